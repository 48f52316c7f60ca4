import type { LiveState } from "../live-state.ts";
import type { TableShape, ViewContent } from "../view.ts";

/** What a view is made of in the worker. It is paused until it is started. */
export interface ViewSource {
	readonly state: LiveState;
	/** Follows the server, from where it was paused. */
	start(): void;
	/** Receives nothing until the next start. */
	pause(): void;
	/** Shows other rows, if the view is a table. */
	reshape(shape: TableShape): void;
	/** What the tab does not know yet; `undefined` if it knows all. The tab knows what was taken. */
	take(): ViewContent | undefined;
	/** Ends the view. */
	close(): void;
}
