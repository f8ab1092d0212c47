// Hides and freezes subjects, and lists those that are.

import { useSignal } from "@preact/signals";
import { formatted } from "../widget/numbers.ts";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { boardPath, call } from "./api.ts";
import { readPath, subjectPage, subjectPath, type Chosen } from "./chosen.ts";
import { Name, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { href } from "./route.ts";
import type { ModeratedPage, ModeratedSubject } from "./types.ts";

/** Others change it rarely, and what this page changes is read at once. */
const EVERY = 60_000;
/** The subjects of a list that a page of a board shows. */
const SHOWN = 20;

/** What is set for a subject, and what can be done about it. */
export function Moderation({ chosen, subject, isRanked, onChange }: {
  chosen: Chosen;
  subject: string;
  isRanked: boolean;
  onChange: () => void;
}) {
  const own = { ...chosen, window: null, period: null };
  const list = (name: string) => readPath(own, `/${name}?limit=1&prefix=${encodeURIComponent(subject)}`);
  const hidden = usePolled<ModeratedPage>(list("hidden"), EVERY);
  const frozen = usePolled<ModeratedPage>(list("frozen"), EVERY);
  const isBusy = useSignal(false);
  const problem = useSignal<RolltopError | null>(null);
  if (!hidden.data.value || !frozen.data.value) return <Notice problem={hidden.problem.value ?? frozen.problem.value} />;
  // The name itself is the first of those that begin with it.
  const of = (page: ModeratedPage): ModeratedSubject | null => {
    const first = page.items[0];
    return first?.subject === subject ? first : null;
  };
  const isHidden = of(hidden.data.value);
  const isFrozen = of(frozen.data.value);
  const set = async (method: string, what: "hidden" | "frozen", body?: object) => {
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      await call(method, subjectPath(own, subject, `/${what}`), body);
      problem.value = null;
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    } finally {
      isBusy.value = false;
    }
    hidden.refresh();
    frozen.refresh();
    onChange();
  };
  const button = (says: string, method: string, what: "hidden" | "frozen", body?: object) => (
    <button type="button" onClick={() => void set(method, what, body)}>{says}</button>
  );
  const visibility = isHidden === null
    ? "It is not hidden."
    : isHidden.shadow
    ? "It is hidden: no ranking has it. Its own standing has the rank that it would have."
    : "It is hidden: it goes on counting, and no ranking has it.";
  return (
    <section class="quiet" aria-labelledby="moderation">
      <h2 id="moderation">Moderation</h2>
      {isRanked && (
        <p class="actions">
          <span>{visibility}</span>
          {isHidden === null ? <>{button("Hide", "PUT", "hidden")}{button("Hide as a shadow", "PUT", "hidden", { shadow: true })}</> : button("Show", "DELETE", "hidden")}
        </p>
      )}
      <p class="actions">
        <span>{isFrozen === null ? "What is sent for it counts." : "It is frozen: nothing counts for it."}</span>
        {isFrozen === null ? button("Freeze", "PUT", "frozen") : button("Unfreeze", "DELETE", "frozen")}
      </p>
      <Notice problem={problem.value} />
    </section>
  );
}

/** The hidden and the frozen subjects of a board, if there are any. */
export function ModeratedSubjects({ board }: { board: string }) {
  const hidden = usePolled<ModeratedPage>(boardPath(board, `/hidden?limit=${SHOWN}`), EVERY);
  const frozen = usePolled<ModeratedPage>(boardPath(board, `/frozen?limit=${SHOWN}`), EVERY);
  const lists: [string, ModeratedPage | null][] = [["Hidden", hidden.data.value], ["Frozen", frozen.data.value]];
  const some = lists.filter((pair): pair is [string, ModeratedPage] => (pair[1]?.total ?? 0) > 0);
  if (some.length === 0) return null;
  return (
    <section class="quiet" aria-labelledby="moderated">
      <h2 id="moderated">Moderated subjects</h2>
      {some.map(([name, page]) => (
        <p key={name}>
          {name} {formatted(page.total)}:{" "}
          {page.items.map(({ by, subject, shadow }, at) => (
            <span key={`${by ?? ""}\0${subject}`}>
              {at > 0 && ", "}
              <a href={href(...subjectPage({ board, window: null, by: by ?? null, period: null }, subject))}>
                <Name of={subject} />{by !== undefined && <> in {by}</>}
              </a>
              {shadow && " (shadowed)"}
            </span>
          ))}
          {page.total > page.items.length && <>, … (<code>rolltop hidden {board}{name === "Frozen" && " --frozen"}</code> prints all)</>}
        </p>
      ))}
    </section>
  );
}
