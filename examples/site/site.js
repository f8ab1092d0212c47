// The lists show the titles of posts. The subjects are their ids.
const nameOf = (id) => document.getElementById(id)?.querySelector("h2")?.textContent;
for (const list of document.querySelectorAll("rolltop-board")) list.nameOf = nameOf;

// A like does not load the page again. If anything is wrong, the form is sent as it is without this script.
for (const form of document.querySelectorAll("article form")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    const response = await fetch(form.action, { method: "POST", redirect: "manual" }).catch(() => null);
    // The answer is a redirection, which this script does not follow.
    if (response?.type !== "opaqueredirect") return form.submit();
    button.textContent = "Liked";
    button.ariaLabel = button.ariaLabel.replace("Like:", "Liked:");
  });
}
