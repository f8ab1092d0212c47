// Removes what a page shows, after a second question.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { call } from "./api.ts";
import { Focused, Notice } from "./parts.tsx";

interface Props<T> {
  /** What the button says that leads to the question. */
  label: string;
  question: ComponentChildren;
  /** What can be answered, with the path that is then removed. */
  ways: [string, string][];
  /** Takes what the service says about the removal. */
  onRemoved: (receipt: T) => void;
}

/** Removes something after a second question. */
export function Removal<T>({ label, question, ways, onRemoved }: Props<T>) {
  const isAsked = useSignal(false);
  const hasCanceled = useSignal(false);
  const isBusy = useSignal(false);
  const problem = useSignal<RolltopError | null>(null);
  const remove = async (path: string) => {
    // The buttons are not disabled meanwhile: that would take the focus from them.
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      const receipt = await call<T>("DELETE", path);
      problem.value = null;
      isAsked.value = false;
      hasCanceled.value = false;
      document.querySelector<HTMLElement>("main h1")?.focus();
      onRemoved(receipt);
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    } finally {
      isBusy.value = false;
    }
  };
  const open = <button type="button" onClick={() => (isAsked.value = true)}>{label} …</button>;
  return (
    <section class="quiet">
      {isAsked.value
        ? (
          <p class="actions">
            <span>{isBusy.value ? "Removing …" : question}</span>
            <Focused>
              <button type="button" onClick={() => { isAsked.value = false; hasCanceled.value = true; }}>Keep</button>
              {ways.map(([answer, path]) => (
                <button type="button" class="danger" key={answer} onClick={() => void remove(path)}>{answer}</button>
              ))}
            </Focused>
          </p>
        )
        : hasCanceled.value ? <Focused key="again">{open}</Focused> : open}
      <Notice problem={problem.value} />
    </section>
  );
}
