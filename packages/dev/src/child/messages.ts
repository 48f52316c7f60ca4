/** An error, as it passes between processes. */
export interface ErrorReport {
	readonly name: string;
	readonly message: string;
	readonly stack?: string;
	/** Whether the message says everything, so that a stack would add nothing. */
	readonly isExpected: boolean;
	readonly cause?: ErrorReport;
}

/** A file that a child has imported. */
export interface ImportedFile {
	readonly path: string;
	/** The hash of its content when it was imported. */
	readonly hash: string;
}

/** What a child tells its supervisor. */
export type ChildMessage =
	/** It has begun to import a file of the project. Sent in batches. */
	| { readonly kind: "imported"; readonly files: readonly ImportedFile[] }
	/** The module is imported and valid. It waits for `serve`. */
	| { readonly kind: "loaded" }
	/** It could not import the module, or start the server, and exits. */
	| { readonly kind: "failed"; readonly error: ErrorReport }
	/** It serves on this port of the loopback interface. */
	| { readonly kind: "ready"; readonly port: number };

/** What a supervisor tells a child. */
export type SupervisorMessage =
	/** It imports the module. Before, it has only the code of the server. */
	| "load"
	/** It opens the data and serves. */
	| "serve"
	| "stop";

/** Whether a message that arrived from a child is one of these: the user's code may send its own. */
export function isChildMessage(message: unknown): message is ChildMessage {
	return (
		typeof message === "object" &&
		message !== null &&
		"plinth" in message &&
		message.plinth === "dev" &&
		"kind" in message
	);
}

/** Marks a message as one of these. */
export function marked(message: ChildMessage): ChildMessage & { readonly plinth: "dev" } {
	return { ...message, plinth: "dev" };
}
