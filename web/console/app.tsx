// The frame of every page: the navigation, and the page that the address names.

import { useEffect } from "preact/hooks";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { call } from "./api.ts";
import { lostSince, nextZone, noteTime, time, zone, zones } from "./clock.ts";
import { DemoBar } from "./demo.tsx";
import { epoch, forget, heldKey, hold, isOpen, isOutdated, isUnchecked, may, reason } from "./key.ts";
import { Empty, Heading } from "./parts.tsx";
import { Board } from "./pages/board.tsx";
import { Boards } from "./pages/boards.tsx";
import { Define } from "./pages/define.tsx";
import { KeyNeeded, KeyPage } from "./pages/key.tsx";
import { Operate } from "./pages/operate.tsx";
import { Rules } from "./pages/rules.tsx";
import { Subject } from "./pages/subject.tsx";
import { href, route } from "./route.ts";
import { API, hasSimulatedClock } from "./settings.ts";
import type { Clock, OwnKey } from "./types.ts";

/** Milliseconds between two tries to reach the service. */
const AGAIN = 2_000;

const PAGES: [string, string][] = [["", "Boards"], ["define", "Define"], ["rules", "Rules"], ["operate", "Operate"]];

/** Asks the service about the key that is held: after a reload, and when it allows less than expected. */
function useOwnKey(): void {
  const isDue = isUnchecked.value || isOutdated.value;
  useEffect(() => {
    const key = heldKey();
    if (key === null || !isDue) return undefined;
    const ending = new AbortController();
    let timer = 0;
    const check = async () => {
      try {
        hold(key, await call<OwnKey>("GET", "v1/keys/self", undefined, ending.signal));
      } catch (error) {
        if (ending.signal.aborted || !(error instanceof RolltopError) || error.status === 401) return;
        // Such as that a proxy makes this page look like one of another origin.
        if (error.status >= 400 && error.status < 500 && error.status !== 429) forget(error.message);
        else timer = window.setTimeout(check, AGAIN);
      }
    };
    void check();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [isDue, epoch.value]);
}

export function App() {
  const { path } = route.value;
  useOwnKey();
  const isReadable = !isUnchecked.value && may("read");
  useEffect(() => {
    // A clock that stands still has no other source than the service.
    if (hasSimulatedClock && isReadable) call<Clock>("GET", "v1/clock").then((clock) => noteTime(clock.now), () => undefined);
  }, [isReadable]);
  const address = path.join("/");
  useEffect(() => {
    // Other pages may be readable without a key.
    if (isOpen && address !== "key") reason.value = null;
  }, [address]);
  const isLost = lostSince.value !== null;
  useEffect(() => {
    if (!isLost) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) call("GET", "healthz").catch(() => undefined);
    }, AGAIN);
    return () => clearInterval(timer);
  }, [isLost]);
  const section = path[0] === "boards" ? "" : (path[0] ?? "");
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.querySelector<HTMLElement>("main h1")?.focus(); }}>Skip to the content</a>
      <header>
        <div class="inside">
          <a class="brand" href={href([])}>
            <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
              <rect class="brand-1" x="3" y="17" width="5" height="11" rx="1.5" /><rect class="brand-2" x="10.5" y="11" width="5" height="17" rx="1.5" />
              <rect class="brand-3" x="18" y="4" width="5" height="24" rx="1.5" /><rect class="brand-4" x="25.5" y="14" width="4" height="14" rx="1.5" />
            </svg>
            Rolltop
          </a>
          <nav aria-label="Pages">
            {PAGES.map(([name, label]) => <a key={name} href={href(name === "" ? [] : [name])} aria-current={section === name ? "page" : undefined}>{label}</a>)}
            <a href={API}>API</a>
            <a href={href(["key"])} aria-current={section === "key" ? "page" : undefined}>Key</a>
          </nav>
          <span class="spring" />
          {zones.length > 1
            ? <button type="button" class="zone" onClick={nextZone} title="Show times in another time zone">Times in {zone.value}</button>
            : <span class="zone">Times in {zone.value}</span>}
        </div>
      </header>
      <DemoBar />
      <main id="main" class={isLost ? "is-lost" : ""}>
        {lostSince.value !== null && (
          <p class="notice" role="alert">
            The service has been unreachable since {time(lostSince.value, { precise: true })}. Showing the last known numbers; retrying.
          </p>
        )}
        {isUnchecked.value
          ? <p class="soft" role="status">Asking the service what the key of this tab allows …</p>
          : section === "key" && path.length === 1
            ? <KeyPage />
            : isReadable && reason.value === null ? <Page key={epoch.value} path={path} /> : <KeyNeeded />}
      </main>
    </>
  );
}

/** The page of a path. The key makes a new page where the path names something else. */
function Page({ path }: { path: string[] }) {
  const [first, board, second, subject] = path;
  const by = route.value.query.get("by") ?? "";
  if (first === undefined) return <Boards />;
  if (first === "define" && board === undefined) return <Define />;
  if (first === "rules" && board === undefined) return <Rules />;
  if (first === "operate" && board === undefined) return <Operate />;
  if (first === "boards" && board !== undefined && second === undefined) return <Board key={`${board}/${by}`} name={board} />;
  if (first === "boards" && board !== undefined && second === "subjects" && subject !== undefined) {
    return <Subject key={JSON.stringify([board, by, subject])} board={board} subject={subject} />;
  }
  return <><Heading title="Not found">There is no such page</Heading><Empty title={location.hash}><p><a href={href([])}>See all boards</a>.</p></Empty></>;
}
