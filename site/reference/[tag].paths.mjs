// The pages of the API's reference: one for each group of operations, and one of the codes of problems.
import { pages } from "./pages.mjs";

export default { paths: () => pages().map(({ name, text }) => ({ params: { tag: name }, content: text })) };
