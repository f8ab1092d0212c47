// What the service has written into the page.

const text = document.querySelector<HTMLMetaElement>('meta[name="rolltop"]')?.content ?? "";
const settings = new Map(text.split(" ").map((pair): [string, string] => {
  const [name = "", value = ""] = pair.split("=");
  return [name, value];
}));

/** Whether the console offers to change boards, as far as the key of the page allows it. */
export const canChange = settings.get("console") === "full";

/** Whether the service has an API explorer. */
export const hasExplorer = settings.get("explorer") === "on";

/** The address of what describes the API. */
export const API = hasExplorer ? "swagger-ui/" : "openapi.json";

/** Whether the service runs on a simulated clock, which stands still until it is moved. */
export const hasSimulatedClock = settings.get("clock") === "simulated";

const listed = (name: string): string[] => (settings.get(name) ?? "").split(",").filter((one) => one !== "");

/** What callers without a key may do: their scopes, and patterns of boards. */
export const anonymous = { scopes: listed("anonymous"), boards: listed("boards") };
