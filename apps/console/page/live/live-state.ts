/** How current a view is. Times are in milliseconds since the epoch. */
export type LiveState =
	| { readonly phase: "connecting" }
	/** Some of the resources are present, and more follow. */
	| { readonly phase: "loading" }
	/** All changes have arrived. */
	| { readonly phase: "live" }
	/** The connection broke, or the server has interrupted the view. What is shown is as of `sinceMs`, and continues from there. */
	| { readonly phase: "lost"; readonly sinceMs: number; readonly reason: string }
	/** The page is hidden. */
	| { readonly phase: "paused"; readonly sinceMs: number }
	/** The server refuses the view: nothing follows. */
	| { readonly phase: "refused"; readonly reason: string };
