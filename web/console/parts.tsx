// Small parts that several pages have.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import type { RolltopError } from "../../clients/typescript/src/error.ts";
import { lostSince } from "./clock.ts";
import type { Connection } from "./live.ts";
import { scrollTo } from "./route.ts";

let hasOpened = false;

/** The heading of a page. It takes the focus when the page is opened, so that screen readers begin there. */
export function Heading({ children, title }: { children: ComponentChildren; title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} – Rolltop`;
    // Not at the first page: there the browser's own start of the document is better.
    if (hasOpened) {
      heading.current?.focus({ preventScroll: true });
      window.scrollTo(0, scrollTo);
    }
    hasOpened = true;
  }, [title]);
  return <h1 ref={heading} tabIndex={-1}>{children}</h1>;
}

/** Returns what was wrong, in the words of the service. That the service is unreachable is shown once, at the top of the page. */
export function messageOf(problem: RolltopError | null): string | null {
  if (problem?.code !== "unreachable") return problem?.detail ?? null;
  return lostSince.value === null ? "The service could not be reached. Try again." : null;
}

/** What was wrong. */
export function Notice({ problem, children }: { problem: RolltopError | null; children?: ComponentChildren }) {
  const message = messageOf(problem);
  return message === null ? null : <p class="notice" role="alert">{message} {children}</p>;
}

/** What to do where there is nothing to show. */
export function Empty({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Selects what is in an element, and copies it. Returns whether that was possible. */
async function copy(element: Element): Promise<boolean> {
  getSelection()?.selectAllChildren(element);
  try {
    await navigator.clipboard.writeText(element.textContent ?? "");
    return true;
  } catch {
    // Browsers have a clipboard only in pages that came over TLS, or from this machine.
    return document.execCommand("copy");
  }
}

/** A text to copy, such as a request for the command line. */
export function Command({ label = "Command", children }: { label?: string; children: string }) {
  const text = useRef<HTMLElement>(null);
  const said = useSignal("");
  const onClick = async () => {
    if (text.current) said.value = (await copy(text.current)) ? "Copied" : "Selected";
    setTimeout(() => (said.value = ""), 2_000);
  };
  return (
    <div class="command-box">
      <pre class="command" tabIndex={0} role="region" aria-label={label}><code ref={text}>{children}</code></pre>
      <span class="small" role="status">{said}</span>
      <button type="button" onClick={onClick}>Copy<span class="hidden"> {label}</span></button>
    </div>
  );
}

const SAYS: Record<Connection, string> = { connecting: "connecting", live: "live", broken: "not live" };

/** Whether what is shown is up to date. */
export function LiveMark({ connection }: { connection: Connection }) {
  return <span class={`live is-${connection}`} role="status"><span class="live-dot" aria-hidden="true" />{SAYS[connection]}</span>;
}

/** A number with its name. */
export function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="figure"><dt>{name}</dt><dd>{children}</dd></div>;
}

/** Writes a number and a word, in the plural where it is not 1. */
export function counted(number: number, word: string, plural = `${word}s`): string {
  return `${number.toLocaleString("en-US").replaceAll(",", "\u202f")} ${number === 1 ? word : plural}`;
}

/** The name of a subject: as it is, in quotes where one could not see where it begins and ends. */
export function Name({ of: subject }: { of: string }) {
  return <bdi>{/^\s|\s$/.test(subject) ? `“${subject}”` : subject}</bdi>;
}

interface FieldProps {
  label: ComponentChildren;
  /** What is wrong with it. */
  error?: string | undefined;
  /** Something between the box and the error. */
  below?: ComponentChildren;
  isWide?: boolean;
  /** Makes the box, which must take these attributes. */
  children: (attributes: { id: string; "aria-invalid"?: true; "aria-describedby"?: string }) => ComponentChildren;
}

/** A box of a form with its label and its error. */
export function Field({ label, error, below, isWide = false, children }: FieldProps) {
  const id = useId();
  return (
    <div class={isWide ? "field wide" : "field"}>
      <label for={id}>{label}</label>
      {children(error ? { id, "aria-invalid": true, "aria-describedby": `${id}-error` } : { id })}
      {below}
      {error && <span class="error" id={`${id}-error`}>{error}</span>}
    </div>
  );
}

/** Points at a column of the text in the box above it, which has the same font. */
export function Caret({ text, column }: { text: string; column: number }) {
  const before = Array.from(text).slice(0, column - 1).join("");
  return <span class="caret" aria-hidden="true"><span class="caret-space">{before}</span>↑</span>;
}

/** Gives the focus to the first button or box inside when it appears. */
export function Focused({ children }: { children: ComponentChildren }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    place.current?.querySelector<HTMLElement>("input, button")?.focus();
  }, []);
  return <span class="actions" ref={place}>{children}</span>;
}
