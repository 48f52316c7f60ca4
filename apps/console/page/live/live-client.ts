import type { Session } from "../app/session.ts";
import type { LiveState } from "./live-state.ts";
import type {
	Port,
	TableShape,
	ToTab,
	ToWorker,
	ViewContent,
	ViewRequest,
	ViewUpdate,
} from "./view.ts";

/** Receives what a view shows: about once a frame. */
export interface ViewObserver {
	readonly onUpdate: (update: Pick<ViewUpdate, "state" | "content">) => void;
}

/** A view that is open. */
export interface LiveView {
	/** Shows other rows, if the view is a table. */
	reshape(shape: TableShape): void;
	/** Ends the view. Nothing is observed afterwards. */
	close(): void;
}

/** What a live client depends on. */
export interface LiveClientOptions {
	readonly port: Port<ToTab, ToWorker>;
	readonly serverUrl: string;
	readonly session: Session;
	readonly isVisible: () => boolean;
	/** Calls back before the next frame. */
	readonly requestFrame: (callback: () => void) => void;
}

type TableRequest = Extract<ViewRequest, { kind: "table" }>;

interface OpenView {
	request: ViewRequest;
	readonly observer: ViewObserver;
}

/** A table that was opened before the page could show it. */
interface EarlyTable {
	readonly view: number;
	readonly request: TableRequest;
	/** What has come of it: one frame, since the worker sends no other before that one was shown. */
	readonly updates: Pick<ViewUpdate, "state" | "content">[];
	isReadyDue: boolean;
}

/**
 * What this tab receives from the worker. A view survives broken connections, restarts of the server and other tokens, without
 * losing or repeating a change.
 */
export class LiveClient {
	readonly #options: LiveClientOptions;
	readonly #views = new Map<number, OpenView>();
	#lastView = 0;
	#early: EarlyTable | undefined;
	#isGreeted = false;
	/** Why nothing comes, if the worker does not run. */
	#failure: string | undefined;

	constructor(options: LiveClientOptions) {
		this.#options = options;
		const { port, session } = options;
		port.listen((message) => this.#receive(message));
		let { token } = session;
		this.#greet();
		session.subscribe(() => {
			if (session.state.kind === "closed") {
				this.leave();
			} else if (!this.#isGreeted || session.token !== token) {
				this.#greet();
			}
			token = session.token;
		});
	}

	/**
	 * Opens a table for the view that is opened next: while the page loads what it needs to show it, the first rows arrive.
	 * If that view is another one, the table is closed.
	 */
	openEarly(request: TableRequest): void {
		this.#lastView += 1;
		const early: EarlyTable = {
			...{ view: this.#lastView, request },
			...{ updates: [], isReadyDue: false },
		};
		this.#early = early;
		const observer = {
			onUpdate: (update: EarlyTable["updates"][number]) => early.updates.push(update),
		};
		this.#views.set(early.view, { request, observer });
		this.#send({ kind: "open", view: early.view, request });
	}

	/** Opens a view. It is received until it is closed. */
	open(request: ViewRequest, observer: ViewObserver): LiveView {
		const early = this.#takeEarly(request);
		if (early === undefined) {
			this.#lastView += 1;
		}
		const view = early?.view ?? this.#lastView;
		const open: OpenView = { request, observer };
		this.#views.set(view, open);
		if (early === undefined) {
			this.#send({ kind: "open", view, request });
		}
		for (const update of early?.updates ?? []) {
			observer.onUpdate(update);
		}
		this.#reportFailure();
		return {
			reshape: (shape) => {
				if (open.request.kind === "table") {
					open.request = { ...open.request, ...shape };
					this.#send({ kind: "reshape", view, shape });
				}
			},
			close: () => {
				if (this.#views.delete(view)) {
					this.#send({ kind: "close", view });
				}
			},
		};
	}

	/** Says whether the tab can be seen: at each change, and every 10 s. */
	sayVisible(): void {
		this.#send({ kind: "visible", isVisible: this.#options.isVisible() });
	}

	/** The network has returned, or the tab is shown again: what waits for its next attempt is tried now. */
	retryNow(): void {
		this.#send({ kind: "retry" });
	}

	/** Leaves the worker, which forgets the tab and its token. */
	leave(): void {
		this.#send({ kind: "bye" });
		this.#isGreeted = false;
	}

	/** Returns to the worker after `leave`. */
	return(): void {
		if (!this.#isGreeted) {
			this.#greet();
		}
	}

	/** The worker does not run: no view receives anything. */
	fail(reason: string): void {
		this.#failure = `the worker of the page failed: ${reason}`;
		this.#reportFailure();
	}

	/** The early table, if the request asks for the same rows; their window and order may be others. */
	#takeEarly(request: ViewRequest): EarlyTable | undefined {
		const early = this.#early;
		this.#early = undefined;
		if (early === undefined) {
			return undefined;
		}
		if (early.isReadyDue) {
			this.#sayReady();
		}
		if (request.kind === "table" && isSameTable(request, early.request)) {
			return early;
		}
		this.#views.delete(early.view);
		this.#send({ kind: "close", view: early.view });
		return undefined;
	}

	#reportFailure(): void {
		const { requestFrame } = this.#options;
		const reason = this.#failure;
		if (reason !== undefined) {
			requestFrame(() => {
				for (const { observer } of this.#views.values()) {
					observer.onUpdate({ state: { phase: "refused", reason } });
				}
			});
		}
	}

	#greet(): void {
		const isNew = !this.#isGreeted;
		const { serverUrl, session, port } = this.#options;
		this.#isGreeted = true;
		port.post({ kind: "hello", serverUrl, token: session.token });
		this.sayVisible();
		if (isNew) {
			for (const [view, { request }] of this.#views) {
				this.#send({ kind: "open", view, request });
			}
		}
	}

	#send(message: ToWorker): void {
		if (this.#isGreeted) {
			this.#options.port.post(message);
		}
	}

	/** Once a frame, so that the worker sends no more than can be painted. */
	#sayReady(): void {
		this.#options.requestFrame(() => this.#send({ kind: "ready" }));
	}

	#receive(message: ToTab): void {
		switch (message.kind) {
			case "frame":
				for (const { view, ...update } of message.updates) {
					this.#views.get(view)?.observer.onUpdate(update);
				}
				if (this.#early === undefined) {
					this.#sayReady();
				} else {
					this.#early.isReadyDue = true;
				}
				break;
			case "refused":
				this.#options.session.refused(message.token);
				break;
			case "unknown":
				this.#isGreeted = false;
				this.return();
		}
	}
}

function isSameTable(a: TableRequest, b: TableRequest): boolean {
	return (
		a.typeKey === b.typeKey &&
		a.namePrefix === b.namePrefix &&
		a.tenancy.partition === b.tenancy.partition &&
		a.tenancy.namespace === b.tenancy.namespace
	);
}

/** The content of views of one kind. */
export type ContentOf<Kind extends ViewContent["kind"]> = Extract<
	ViewContent,
	{ readonly kind: Kind }
>;

/** The state of a view that nothing is known of. */
export const connecting: LiveState = { phase: "connecting" };
