import type { Page } from "./page.ts";
import type { StorageFileProblem } from "./storage-file-error.ts";
import type { RowWrite } from "./writer.ts";

/**
 * What the backend and its worker say to each other:
 *
 * ```
 *   backend                                worker
 *      │  ◀── opened (revision, count) ───── │   or open-failed, and the worker ends
 *      │ ──── next-page ───────────────────▶ │   until
 *      │  ◀── page        ────────────────── │
 *      │  ◀── loaded ─────────────────────── │   all was read, and the file is open for writing
 *      │ ──── write (revision, rows) ──────▶ │   one at a time
 *      │  ◀── written, or write-failed ───── │
 *      │ ──── close ───────────────────────▶ │   the worker ends
 * ```
 */
export type Request =
	| { readonly kind: "next-page" }
	| { readonly kind: "write"; readonly revision: number; readonly rows: readonly RowWrite[] }
	| { readonly kind: "close" };

/** What the worker answers. */
export type Reply =
	| { readonly kind: "opened"; readonly revision: number; readonly resources: number }
	| {
			readonly kind: "open-failed";
			readonly problem: StorageFileProblem;
			readonly why: string;
	  }
	| { readonly kind: "page"; readonly page: Page }
	| { readonly kind: "loaded" }
	| { readonly kind: "written" }
	| {
			readonly kind: "write-failed";
			readonly why: string;
			/** Nothing of it was written, and the next write may succeed. */
			readonly diskFull: boolean;
	  };

/** What the worker is started with. */
export interface WorkerInput {
	readonly path: string;
}
