// Small parts that several pages have.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "./api.ts";
import type { Connection } from "./live.ts";

/** The heading of a page. It takes the focus when the page is opened, so that screen readers begin there. */
export function Heading({ children, title }: { children: ComponentChildren; title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Rolltop`;
    // Not at the first page: there the browser's own start of the document is better.
    if (hasOpened) heading.current?.focus({ preventScroll: true });
    hasOpened = true;
    window.scrollTo(0, 0);
  }, [title]);
  return <h1 ref={heading} tabIndex={-1}>{children}</h1>;
}

let hasOpened = false;

/** What was wrong, in the words of the service. */
export function Notice({ problem, children }: { problem: Problem | null; children?: ComponentChildren }) {
  return problem && (
    <p class="notice" role="alert">
      {problem.message} {children}
    </p>
  );
}

/** What to do where there is nothing to show. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A request for the command line. */
export function Command({ children }: { children: string }) {
  return <pre class="command" tabIndex={0} role="region" aria-label="Command"><code>{children}</code></pre>;
}

const SAYS: Record<Connection, string> = { connecting: "connecting", live: "live", broken: "not live" };

/** Whether what is shown is up to date. */
export function LiveMark({ connection }: { connection: Connection }) {
  return <span class={`live is-${connection}`}><span class="live-dot" aria-hidden="true" />{SAYS[connection]}</span>;
}

/** A number with its name. */
export function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="figure"><dt>{name}</dt><dd>{children}</dd></div>;
}

/** Writes a number and a word, in the plural where it is not 1. */
export function counted(number: number, word: string, plural = `${word}s`): string {
  return `${number.toLocaleString("en-US").replaceAll(",", "\u202f")} ${number === 1 ? word : plural}`;
}
