// The key of this page: asks for one, shows what it allows, and forgets it.

import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { RolltopError } from "../../../clients/typescript/src/error.ts";
import { call } from "../api.ts";
import { time } from "../clock.ts";
import { forget, grant, hold, isOpen, isOutdated, may, own, reason, type Grant } from "../key.ts";
import { Figure, Heading, messageOf } from "../parts.tsx";
import { href } from "../route.ts";
import type { OwnKey } from "../types.ts";

/** The form of a key. What has another form may be a secret of something else, and is not sent. */
const FORM = /^rtp?_\w+_\w+$/;

/** Shown in place of a page that cannot be read with the present key, or without one. */
export function KeyNeeded() {
  const known = own.value;
  return (
    <>
      <div class="title">
        <Heading title="A key is needed">A key is needed</Heading>
        <p class="soft">A key says what its owner may do. The operator of this service makes keys.</p>
      </div>
      {reason.value !== null && <p class="notice" role="alert">{reason.value}</p>}
      {known && !may("read") && <p class="notice" role="alert">The key “{known.name}” does not have the scope read, without which the console can show nothing.</p>}
      {known && <Known known={known} />}
      <KeyForm isFocused />
      {reason.value !== null && isOpen && <p><a href={href([])} onClick={() => (reason.value = null)}>See the boards that need no key</a></p>}
    </>
  );
}

/** The page about the key. */
export function KeyPage() {
  const known = own.value;
  const hasForgotten = useSignal(false);
  const before = useRef(known?.id);
  useEffect(() => {
    isOutdated.value = own.peek() !== null;
  }, []);
  useEffect(() => {
    // The form that had the focus makes place for another one.
    if (known && known.id !== before.current) document.querySelector<HTMLElement>("main h1")?.focus();
    before.current = known?.id;
  }, [known?.id]);
  return (
    <>
      <div class="title">
        <Heading title="Key">Key</Heading>
        <p class="soft">This browser tab keeps the key until it is closed, and sends it with every request. It is stored nowhere else.</p>
        <div role="status">{hasForgotten.value && !known && <p>The key was forgotten.</p>}</div>
      </div>
      {reason.value !== null && <p class="notice" role="alert">{reason.value}</p>}
      {known
        ? (
          <>
            <Known known={known} />
            <p class="actions"><button type="button" onClick={() => { hasForgotten.value = true; forget(); }}>Forget the key</button></p>
          </>
        )
        : (
          <section class="panel" aria-label="Without a key">
            <p>There is no key. {grant.value.scopes.length === 0 ? "Without one the service refuses all requests." : "Every caller without a key has:"}</p>
            {grant.value.scopes.length > 0 && <dl class="figures"><Allowed grant={grant.value} /></dl>}
          </section>
        )}
      <KeyForm key={`${known === null}`} isFocused={hasForgotten.value} />
    </>
  );
}

/** What a grant allows. */
function Allowed({ grant: { scopes, boards } }: { grant: Grant }) {
  return (
    <>
      <Figure name="Scopes"><b>{scopes.includes("admin") ? "admin, which includes all others" : scopes.join(", ")}</b></Figure>
      <Figure name="Boards"><b>{boards.includes("*") ? "all" : boards.join(", ")}</b></Figure>
    </>
  );
}

/** A key with what it allows. */
function Known({ known }: { known: OwnKey }) {
  return (
    <section class="panel" aria-label="The key">
      <dl class="figures">
        <Figure name="Name"><b><bdi>{known.name}</bdi></b></Figure>
        <Figure name="Id"><code>{known.id}</code></Figure>
        <Allowed grant={known} />
        <Figure name="Expires">{known.expires_at === null ? "never" : time(known.expires_at, { precise: true })}</Figure>
        {known.kind === "publishable" && <Figure name="Kind">publishable</Figure>}
        {known.rotating_until !== null && <Figure name="Rotated">the secret before is valid until {time(known.rotating_until, { precise: true })}</Figure>}
      </dl>
    </section>
  );
}

/** Asks for a key. What was typed is out of the document as soon as it is sent. */
function KeyForm({ isFocused }: { isFocused: boolean }) {
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  const isBusy = useSignal(false);
  const wrong = useSignal<string | null>(null);
  useEffect(() => {
    if (isFocused) box.current?.focus();
  }, []);
  const submit = async (input: HTMLInputElement) => {
    const key = input.value.trim();
    if (isBusy.value) return;
    input.value = "";
    if (!FORM.test(key)) {
      wrong.value = "This is not a key. A key has the form rt_<id>_<secret>.";
      input.focus();
      return;
    }
    isBusy.value = true;
    wrong.value = null;
    try {
      hold(key, await call<OwnKey>("GET", "v1/keys/self", undefined, undefined, key));
    } catch (error) {
      if (!(error instanceof RolltopError)) return;
      if (error.code === "invalid_key") wrong.value = "The service does not know this key. It may have been revoked.";
      else wrong.value = error.code === "key_expired" ? "This key has expired." : messageOf(error);
      box.current?.focus();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form
      class="key"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        if (box.current) void submit(box.current);
      }}
    >
      <label for={id}>{own.value ? "Another key" : "Key"}</label>
      <div class="line">
        <input
          id={id}
          ref={box}
          class="code"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="rt_…"
          {...(wrong.value === null ? {} : { "aria-invalid": true, "aria-describedby": `${id}-error` })}
        />
        <button type="submit" class="main">Use this key</button>
      </div>
      <span class="error" id={`${id}-error`} role="status">{isBusy.value ? "Asking the service …" : wrong.value}</span>
    </form>
  );
}
