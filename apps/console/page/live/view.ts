import type { TypeLike } from "@plinth/resource";
import type { Tone } from "../model/tone.ts";
import type { OverviewSample } from "../overview/overview-sample.ts";
import type { RowOrder } from "../table/row-order.ts";
import type { LiveQuery } from "./live-list.ts";
import type { LiveState } from "./live-state.ts";

/** The resources of a table. The tab need not know the type to ask for them. */
export interface TableQuery {
	/** The name of the type, as in `catalog.v1.Workload`. */
	readonly typeKey: string;
	/** `*` denotes all partitions, or all namespaces. Units that the type does not have are ignored. */
	readonly tenancy: LiveQuery["tenancy"];
	/** Empty for all names. */
	readonly namePrefix: string;
}

/** What a tab wants to follow. */
export type ViewRequest =
	/** Resources of a type as rows, of which the tab receives those in its window. */
	| ({
			readonly kind: "table";
	  } & TableQuery &
			TableShape)
	/** One resource. */
	| {
			readonly kind: "resource";
			readonly type: TypeLike;
			readonly tenancy: LiveQuery["tenancy"];
			readonly name: string;
	  }
	/** The overview of the cluster. */
	| { readonly kind: "overview" };

/** Which rows of a table the tab shows, and how. A tab may change it. */
export interface TableShape {
	readonly order: RowOrder;
	/** Words that a row must contain. */
	readonly filter: string;
	/** The position of the first row. */
	readonly start: number;
	/** The number of rows. */
	readonly count: number;
}

/** The most rows that a window may have. */
export const mostWindowRows = 500;

/** A row of a table as it is sent. It does not change: a changed resource has another one. */
export interface SentRow {
	/** Identifies the row in its table. */
	readonly id: number;
	/** The key of the resource's name. */
	readonly key: string;
	readonly name: string;
	readonly partition: string;
	readonly namespace: string;
	/** One for each column of the type. */
	readonly cells: readonly string[];
	readonly status: { readonly text: string; readonly tone: Tone };
	readonly isBeingDeleted: boolean;
	/** In milliseconds since the epoch. */
	readonly createdMs: number | undefined;
	/** When it changed while it was being watched, in milliseconds since the epoch. */
	readonly changedMs: number | undefined;
}

/** What a view shows, as of one frame. */
export type ViewContent =
	| {
			readonly kind: "table";
			/** The position of the first row of the window. */
			readonly start: number;
			/** The ids of the rows in the window, in order. */
			readonly ids: readonly number[];
			/** Those of them that the tab does not have. */
			readonly rows: readonly SentRow[];
			/** How many rows match the filter. */
			readonly matching: number;
			/** How many there are, whether they match or not. */
			readonly total: number;
	  }
	| {
			readonly kind: "resource";
			/** The newest version, encoded; the last one if it was deleted, and `undefined` if there was none. */
			readonly bytes: Uint8Array | undefined;
			/** Whether there is a resource with that name. */
			readonly isPresent: boolean;
	  }
	| {
			readonly kind: "overview";
			/** The newest overview, encoded. */
			readonly bytes: Uint8Array | undefined;
			/** The figures of the last minutes. */
			readonly samples: readonly OverviewSample[];
	  };

/** What a view has become since the last frame. */
export interface ViewUpdate {
	readonly view: number;
	readonly state?: LiveState;
	readonly content?: ViewContent;
}

/** What a tab sends to the worker. */
export type ToWorker =
	/** The tab calls this server, with this token. Its views go on with it. */
	| { readonly kind: "hello"; readonly serverUrl: string; readonly token: string }
	/** Whether the tab can be seen. One that can repeats it, so that a tab that crashed counts as hidden. */
	| { readonly kind: "visible"; readonly isVisible: boolean }
	| { readonly kind: "open"; readonly view: number; readonly request: ViewRequest }
	| { readonly kind: "reshape"; readonly view: number; readonly shape: TableShape }
	| { readonly kind: "close"; readonly view: number }
	/** Something has happened after which the server may be reached: attempts that wait are made now. */
	| { readonly kind: "retry" }
	/** The tab has shown the last frame, and takes the next one. */
	| { readonly kind: "ready" }
	/** The tab is closed. */
	| { readonly kind: "bye" };

/** What the worker sends to a tab. */
export type ToTab =
	/** Sent when the tab is ready and something has changed. */
	| { readonly kind: "frame"; readonly updates: readonly ViewUpdate[] }
	/** The server does not accept the token. */
	| { readonly kind: "refused"; readonly token: string }
	/** The worker does not know the tab, which has been silent for long: it has to say everything again. */
	| { readonly kind: "unknown" };

/** One end of a channel between a tab and the worker. */
export interface Port<Incoming, Outgoing> {
	post(message: Outgoing): void;
	/** Receives the messages that arrive from now on. Called once. */
	listen(onMessage: (message: Incoming) => void): void;
}
