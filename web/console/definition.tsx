// The definition of a board as the service has it, to be read and copied.

import type { BoardStatus } from "./types.ts";

/** The keys of a definition, in the order in which they are read. */
const KEYS = [
  "metric", "slot", "windows", "timezone", "starts", "mode", "season", "order", "decimals", "min_samples", "prior", "cap", "ties", "tie_break",
  "ranks", "movement", "attributes", "ranked", "dedupe", "stamp", "max_values", "max_keys", "cover", "keep", "shards",
] as const satisfies (keyof BoardStatus)[];

/** Shows the keys that the board has. Those that it has not are not in its state either. */
export function Definition({ board }: { board: BoardStatus }) {
  const keys = KEYS.filter((key) => board[key] !== undefined && board[key] !== null);
  return (
    <details class="definition">
      <summary>Definition</summary>
      <pre class="code">{JSON.stringify(Object.fromEntries(keys.map((key) => [key, board[key]])), null, 2)}</pre>
    </details>
  );
}
