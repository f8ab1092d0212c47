// The lists show the titles of posts. The subjects are their ids.
const nameOf = (id) => document.getElementById(id)?.querySelector("h2")?.textContent;
for (const list of document.querySelectorAll("rolltop-board")) list.nameOf = nameOf;

/** Likes a post: the site signs a token for this person and post, and this page posts it to Rolltop. */
async function like(post) {
  const signed = await fetch(`/token/${post}`, { method: "POST" });
  if (!signed.ok) throw new Error(`no token: ${await signed.text()}`);
  const { rolltop } = document.querySelector(".posts").dataset;
  // The token says what is counted, so the body says nothing. A like that has counted before is no error.
  const headers = { authorization: `Bearer ${await signed.text()}`, "content-type": "application/json" };
  const counted = await fetch(`${rolltop}/v1/events`, { method: "POST", headers, body: "{}" });
  if (!counted.ok) throw new Error(`not counted: ${await counted.text()}`);
}

// The browser remembers what the buttons show. Rolltop counts each like once, whatever they show.
for (const button of document.querySelectorAll("article button")) {
  const post = button.closest("article").id;
  const show = (text) => {
    button.textContent = text;
    button.ariaLabel = `${text}: ${nameOf(post)}`;
    button.disabled = text === "Liked";
  };
  show(localStorage.getItem(post) ?? "Like");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await like(post);
      localStorage.setItem(post, "Liked");
      show("Liked");
    } catch (error) {
      // Whether it was counted or not: the next token is for the same like.
      console.warn(error);
      show("Try again");
    }
  });
}
