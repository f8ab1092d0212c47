// Tests of the key that the console asks for.

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { becomes, BOARDS, figure, focused, inUtc, ranks, visit } from "./console.mjs";
import { checkAccessibility, makeKey, ROOT, until } from "./harness.mjs";
import { ADMIN, authorizationOf, configWith, isAbsent, REFUSED, startWithKeys, watch } from "./keys.mjs";

/** A key that only reads some of the boards. */
const READER = makeKey({ name: "a reader", scopes: ["read"], boards: ["hot-*", "ever"] });

/** Checks that a key is in no address, no message, not in the document, and in no storage that outlives the tab. */
async function staysSecret(page, seen, key) {
  const shown = await page.evaluate(() => [
    document.documentElement.outerHTML,
    location.href,
    document.cookie,
    JSON.stringify(localStorage),
    JSON.stringify(history.state),
    ...[...document.querySelectorAll("input")].map((input) => input.value),
  ]);
  isAbsent(key, [...shown, ...seen.texts]);
}

const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
const box = (page) => page.locator("form.key input");

/** Types a key into the form, and sends it with Enter. */
async function enter(page, key) {
  await box(page).fill(key.text ?? key);
  await box(page).press("Enter");
}

describe("the console", { concurrency: 4 }, () => {
  for (const [device, scheme] of [["desktop", "light"], ["phone", "dark"]]) {
    test(`it asks for a key, and works with it, on a ${scheme} ${device}`, inUtc({ device, scheme }, async ({ page, context, allow }) => {
      allow(REFUSED);
      const service = await startWithKeys([]);
      await service.count("hot-posts", { a: 3, b: 5 });
      const seen = watch(page);
      await visit(page, service, "boards/hot-posts");
      await heading(page, "A key is needed");
      assert.equal(seen.calls.length, 0, "nothing is asked that would be refused");
      assert.deepEqual(
        await box(page).evaluate((input) => [input.type, input.autocomplete, input === document.activeElement, input.labels[0].textContent]),
        ["password", "off", true, "Key"],
      );
      await checkAccessibility(page);
      await page.screenshot({ path: join(ROOT, `target/browser/key-needed-${device}-${scheme}.png`) });

      await enter(page, "a password of mine");
      await page.getByText("This is not a key.").waitFor();
      assert.equal(seen.calls.length, 0, "what is no key is not sent");
      await enter(page, `rt_0000000000000000_${"0".repeat(64)}`);
      await page.getByText("The service does not know this key.").waitFor();
      assert.equal(await focused(page).then((text) => text.split(" ")[0]), "input");
      await checkAccessibility(page);
      assert.equal(await page.evaluate(() => sessionStorage.length), 0, "it is not kept");

      await enter(page, ADMIN);
      await heading(page, "hot-posts");
      await ranks(page, ["1 b 5", "2 a 3"]);
      await page.getByText("live", { exact: true }).waitFor();
      await service.count("hot-posts", { a: 3 });
      await ranks(page, ["1 a 6", "2 b 5"]);
      await staysSecret(page, seen, ADMIN);

      // The tab keeps it, a reload does not ask again.
      const before = seen.calls.length;
      await page.reload();
      await ranks(page, ["1 a 6", "2 b 5"]);
      for (const call of seen.calls.slice(before)) assert.equal(await authorizationOf(call), `Bearer ${ADMIN.text}`);
      assert.ok(seen.calls.some((call) => call.url().includes("/stream")), "streams have it, too");

      await page.getByRole("link", { name: "Key", exact: true }).click();
      await heading(page, "Key");
      assert.equal(await figure(page, "Name").textContent(), "the tests");
      assert.equal(await figure(page, "Scopes").textContent(), "admin, which includes all others");
      assert.equal(await figure(page, "Boards").textContent(), "all");
      assert.equal(await figure(page, "Expires").textContent(), "never");
      await checkAccessibility(page);
      await page.screenshot({ path: join(ROOT, `target/browser/key-${device}-${scheme}.png`) });
      await enter(page, `rt_0000000000000000_${"0".repeat(64)}`);
      await page.getByText("The service does not know this key.").waitFor();
      assert.equal(await figure(page, "Name").textContent(), "the tests", "the key before stays");
      await staysSecret(page, seen, ADMIN);
      const second = await context.newPage();
      await visit(second, service);
      await heading(second, "A key is needed");
      await second.close();

      await page.getByRole("button", { name: "Forget the key" }).click();
      await page.getByText("The key was forgotten.").waitFor();
      assert.equal(await focused(page).then((text) => text.split(" ")[0]), "input");
      assert.equal(await page.evaluate(() => sessionStorage.length), 0);
      await page.goBack();
      await heading(page, "A key is needed");
      assert.equal(await page.getByText("hot-posts").count(), 0);
      await staysSecret(page, seen, ADMIN);
    }));
  }

  test("every operation of the console works with a key", inUtc({}, async ({ page }) => {
    const service = await startWithKeys([]);
    await visit(page, service, "define?name=songs");
    await enter(page, ADMIN);
    await page.locator(".define [role=status]").getByText("has 24 slots").waitFor();
    await page.getByRole("button", { name: "Define", exact: true }).click();
    await heading(page, "songs");
    await page.getByText('-H "authorization: Bearer $ROLLTOP_KEY"').waitFor();
    await page.getByRole("link", { name: "Operate" }).click();
    await page.getByRole("button", { name: "Audit songs" }).click();
    await page.getByText("all agree").waitFor();
    await figure(page, "Rollovers").waitFor();
    await page.getByRole("button", { name: "+ 1 hour" }).click();
    await page.getByText("2026-03-04T11:20:00Z").waitFor();
    await page.getByRole("button", { name: "Remove songs" }).click();
    await page.getByLabel(/Type its name/).fill("songs");
    await page.getByLabel(/Type its name/).press("Enter");
    await page.getByText("The board songs was removed.").waitFor();
    await page.getByRole("link", { name: "Rules" }).click();
    await page.getByLabel("Value of post_id").fill("p");
    await page.getByRole("button", { name: "Evaluate" }).click();
    await page.getByText("No hit").waitFor();
  }));

  test("a key that only reads changes nothing, and the page says why", inUtc({}, async ({ page }) => {
    const service = await startWithKeys([READER]);
    await service.count("hot-posts", { a: 3 });
    await service.count("ever", { a: 3 });
    const seen = watch(page);
    await visit(page, service);
    await enter(page, READER);
    await heading(page, "Boards");
    await becomes(async () => (await page.locator(".boards-name").allTextContents()).sort(), ["ever", "hot-posts"]);
    await page.getByRole("link", { name: "Operate" }).click();
    await page.getByText("Boards can only be read here. The key “a reader” does not have the scope manage.").waitFor();
    await page.getByText("Figures of the service are not shown. The key “a reader” does not have the scope metrics.").waitFor();
    await page.getByText("It cannot be moved here. The key “a reader” does not have the scope admin.").waitFor();
    await page.locator(".operate").getByText("hot-posts").waitFor();
    assert.equal(await page.getByRole("button", { name: /Roll over|Audit|Remove|Move/ }).count(), 0);
    await checkAccessibility(page);
    await page.getByRole("link", { name: "Define" }).click();
    await page.getByText("The key “a reader” does not have the scope manage.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Define" }).count(), 0);
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 a 3"]);
    assert.equal(await page.getByText("Tiers").count(), 0);
    await visit(page, service, "boards/hot-posts/subjects/a");
    await figure(page, "Score").waitFor();
    assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
    assert.ok(seen.calls.every((call) => ["GET"].includes(call.method())), "nothing is tried that would be refused");
    await staysSecret(page, seen, READER);
  }));

  test("nothing that was read with another key is shown", inUtc({}, async ({ page }) => {
    const service = await startWithKeys([READER]);
    await service.count("hot-posts", { a: 3 });
    await visit(page, service);
    await enter(page, ADMIN);
    await page.locator(".boards > li", { hasText: "hot-posts" }).locator("b").first().waitFor();
    await page.getByRole("link", { name: "Key", exact: true }).click();
    await enter(page, READER);
    await figure(page, "Name").getByText("a reader").waitFor();
    let release;
    const isReleased = new Promise((resolve) => (release = resolve));
    await page.route(/\/v1\/boards(\/|$)/, async (route) => (await isReleased, route.continue()));
    await page.getByRole("link", { name: "Boards", exact: true }).click();
    await heading(page, "Boards");
    assert.equal(await page.locator("main li, main b").count(), 0);
    release();
    await becomes(async () => (await page.locator(".boards-name").allTextContents()).sort(), ["ever", "hot-posts"]);
  }));

  test("a board of other keys is refused, and the page says so", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startWithKeys([READER]);
    await visit(page, service, "boards/trending");
    await enter(page, READER);
    await page.getByText("board 'trending' is not one of the boards that the caller may use").first().waitFor();
  }));

  test("a key that manages some boards defines and removes those", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const manager = makeKey({ name: "a manager", scopes: ["read", "manage"], boards: ["hot-*"] });
    const service = await startWithKeys([manager]);
    await visit(page, service, "define");
    await enter(page, manager);
    await page.locator(".define [role=status]").getByText("has 24 slots").waitFor();
    await page.getByLabel("Name of the board").fill("cold");
    await page.getByText("board 'cold' is not one of the boards that the caller may use").waitFor();
    await page.getByLabel("Name of the board").fill("hot-songs");
    await page.locator(".define [role=status]").getByText("has 24 slots").waitFor();
    await page.getByRole("button", { name: "Define", exact: true }).click();
    await heading(page, "hot-songs");
    await page.getByRole("link", { name: "Operate" }).click();
    await page.getByRole("button", { name: "Remove hot-songs" }).waitFor();
    assert.equal(await page.locator(".operate > li").count(), 2);
  }));

  test("a key without the scope read is told what is missing", inUtc({}, async ({ page }) => {
    const viewer = makeKey({ name: "a viewer", scopes: ["view"] });
    const service = await startWithKeys([viewer]);
    await visit(page, service);
    await enter(page, viewer);
    await page.getByText("The key “a viewer” does not have the scope read").waitFor();
    await checkAccessibility(page);
    await enter(page, ADMIN);
    await heading(page, "Boards");
  }));

  test("a revoked key leads back to the form, and another one to the same page", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const [first, second] = ["one", "two"].map((name) => makeKey({ name, scopes: ["read"] }));
    const service = await startWithKeys([first]);
    await service.count("hot-posts", { a: 3 });
    const seen = watch(page);
    await visit(page, service, "boards/hot-posts");
    await enter(page, first);
    await ranks(page, ["1 a 3"]);
    service.configure(configWith([second]));
    await heading(page, "A key is needed");
    await page.getByText("The key is not valid any more: it was revoked or replaced.").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    assert.equal(await page.locator(".ranking").count(), 0, "what was read with it is gone");
    const asked = seen.calls.length;
    await pause(2_000);
    assert.equal(seen.calls.length, asked, "nothing is asked without a key");
    await checkAccessibility(page);
    await enter(page, second);
    await ranks(page, ["1 a 3"]);
    await staysSecret(page, seen, first);
    await staysSecret(page, seen, second);
  }));

  test("a key that has expired leads back to the form", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const brief = makeKey({ name: "brief", scopes: ["read"], expires_at: "2999-01-01T00:00:00Z" });
    const service = await startWithKeys([brief]);
    await visit(page, service, "boards/hot-posts");
    await enter(page, brief);
    await heading(page, "hot-posts");
    const soon = new Date(Date.now() + 3_000).toISOString();
    service.configure(configWith([{ table: brief.table.replace("2999-01-01T00:00:00Z", soon) }]));
    await heading(page, "A key is needed");
    await page.getByText("The key has expired.").waitFor();
    await enter(page, brief);
    await page.getByText("This key has expired.").waitFor();
  }));

  test("a key whose rights change is shown as it is now", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const key = makeKey({ name: "changing", scopes: ["read", "manage"] });
    const service = await startWithKeys([key]);
    await visit(page, service, "operate");
    await enter(page, key);
    await page.getByRole("button", { name: "Audit ever" }).waitFor();
    service.configure(configWith([{ table: key.table.replace(',"manage"', "") }]));
    await until(async () => {
      const audit = page.getByRole("button", { name: "Audit ever" });
      // Its request is refused, and then the button goes away.
      await audit.click({ timeout: 500 }).catch(() => undefined);
      return (await audit.count()) === 0;
    }, "the buttons are gone");
    await page.getByText("The key “changing” does not have the scope manage.").waitFor();
  }));

  test("where everybody may read, only changes need a key", inUtc({}, async ({ page }) => {
    const service = await startWithKeys([], 'anonymous = "read"\nanonymous_boards = ["hot-posts", "ever"]');
    await service.count("hot-posts", { a: 3 });
    await visit(page, service);
    await becomes(async () => (await page.locator(".boards-name").allTextContents()).sort(), ["ever", "hot-posts"]);
    await page.getByRole("link", { name: "Operate" }).click();
    await page.getByText("Boards can only be read here. This needs a key with the scope manage.").waitFor();
    await page.getByRole("link", { name: "Key", exact: true }).click();
    assert.equal(await figure(page, "Scopes").textContent(), "view, read");
    assert.equal(await figure(page, "Boards").textContent(), "hot-posts, ever");
    await checkAccessibility(page);
    await enter(page, ADMIN);
    await figure(page, "Name").getByText("the tests").waitFor();
    await becomes(() => focused(page), "h1 Key");
    await page.getByRole("link", { name: "Operate" }).click();
    await page.getByRole("button", { name: "Audit device-logins" }).waitFor();
  }));

  test("a board that is not for everybody asks for a key, and other pages go on without", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startWithKeys([], 'anonymous = "read"\nanonymous_boards = ["hot-posts"]');
    await visit(page, service, "boards/trending");
    await heading(page, "A key is needed");
    await page.getByText("This needs a key.").waitFor();
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await heading(page, "Rules");
    await page.goBack();
    await heading(page, "A key is needed");
    await checkAccessibility(page);
    await page.getByRole("link", { name: "See the boards that need no key" }).click();
    await heading(page, "Boards");
    await visit(page, service, "boards/trending");
    await heading(page, "A key is needed");
    await enter(page, ADMIN);
    await heading(page, "trending");

    // The same address as the link's.
    await page.getByRole("link", { name: "Boards", exact: true }).click();
    await page.locator(".boards-name").getByText("trending").waitFor();
    service.configure(BOARDS);
    await page.getByText("The key is not valid any more").waitFor();
    await page.getByRole("link", { name: "See the boards that need no key" }).click();
    await becomes(() => page.locator(".boards-name").allTextContents(), ["hot-posts"]);
  }));

  test("the page about the key notices that it was revoked", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startWithKeys([READER]);
    await visit(page, service, "define");
    await enter(page, READER);
    await heading(page, "Define a board");
    service.configure(configWith([]));
    const status = async () => (await fetch(`${service.base}/v1/keys/self`, { headers: { authorization: `Bearer ${READER.text}` } })).status;
    await becomes(status, 401);
    await page.getByRole("link", { name: "Key", exact: true }).click();
    await page.getByText("The key is not valid any more").waitFor();
    await page.getByText("Without one the service refuses all requests.").waitFor();
    await enter(page, ADMIN);
    await figure(page, "Name").getByText("the tests").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
  }));

  test("a service that cannot be reached does not cost the key", inUtc({}, async ({ page, allow }) => {
    allow(/ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/);
    const service = await startWithKeys([]);
    await visit(page, service);
    await enter(page, ADMIN);
    await heading(page, "Boards");
    await service.kill();
    await page.getByText("The service has been unreachable since").waitFor();
    await service.restart();
    await page.getByText("The service has been unreachable since").waitFor({ state: "detached" });
    await heading(page, "Boards");
    assert.equal(await page.evaluate(() => sessionStorage.length), 1);
  }));
});
