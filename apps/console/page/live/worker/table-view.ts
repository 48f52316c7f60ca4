import { ConnectError } from "@connectrpc/connect";
import type { KnownType } from "@plinth/documents";
import { hasNamespace, hasPartition } from "@plinth/resource";
import type { Clock, Timer } from "@plinth/runtime";
import { type ResourceRow, rowFormat } from "../../table/resource-row.ts";
import { SortedRows } from "../../table/sorted-rows.ts";
import type { LiveChange, LiveQuery } from "../live-list.ts";
import type { LiveState } from "../live-state.ts";
import { mostWindowRows, type TableShape, type ViewContent, type ViewRequest } from "../view.ts";
import { FollowedList } from "./followed-list.ts";
import type { ServerLink } from "./server-link.ts";
import type { ViewSource } from "./view-source.ts";

type TableRequest = Extract<ViewRequest, { kind: "table" }>;

/** So many changes wait for a frame; then they are applied without one. */
const mostPending = 5_000;

/** So many rows fill a screen: they are shown without waiting for those that arrive with them. */
const firstRows = 60;

/** How long fewer rows than that wait for others, in milliseconds. */
const firstRowsWaitMs = 40;

/** Follows the resources of a type as rows. All of them stay here, sorted; the tab receives those of its window. */
export class TableView implements ViewSource {
	readonly #link: ServerLink;
	readonly #request: TableRequest;
	readonly #clock: Clock;
	readonly #onChange: (isUrgent?: boolean) => void;
	readonly #list: FollowedList;
	#shape: TableShape;
	#type: KnownType | undefined;
	/** Set when the types of the server are known. */
	#rows: SortedRows | undefined;
	#pending: LiveChange[] = [];
	#isStarted = false;
	#isLoading = false;
	#refusal: string | undefined;
	/** The ids of the rows that the tab has: those of the last window. */
	#sent: ReadonlySet<number> = new Set();
	/** What the tab shows, as text: no rows. */
	#shown = "0 0 0 ";
	#hasFirstRows = false;
	#firstRowsWait: Timer | undefined;

	/**
	 * @param onChange - called when there may be something to take, or another state. It is urgent if the tab shows nothing yet,
	 * and a screen full of rows has come.
	 */
	constructor(
		link: ServerLink,
		request: TableRequest,
		clock: Clock,
		onChange: (isUrgent?: boolean) => void,
	) {
		this.#link = link;
		this.#request = request;
		this.#shape = request;
		this.#clock = clock;
		this.#onChange = onChange;
		this.#list = new FollowedList(link, () => queryOf(request, this.#type), {
			onChanges: (changes) => this.#receive(changes),
			onState: () => {
				if (this.#list.state.phase === "live") {
					this.#endFirstRowsWait();
				}
				onChange();
			},
		});
	}

	get state(): LiveState {
		if (this.#refusal !== undefined) {
			return { phase: "refused", reason: this.#refusal };
		}
		const { state } = this.#list;
		return state.phase === "loading" && !this.#hasFirstRows ? { phase: "connecting" } : state;
	}

	start(): void {
		this.#isStarted = true;
		if (this.#rows !== undefined) {
			this.#list.start();
		} else if (!this.#isLoading) {
			void this.#load();
		}
	}

	pause(): void {
		this.#isStarted = false;
		this.#endFirstRowsWait();
		this.#list.pause();
	}

	reshape(shape: TableShape): void {
		this.#shape = shape;
		this.#applyShape();
		this.#onChange();
	}

	take(): ViewContent | undefined {
		const rows = this.#rows;
		if (rows === undefined || this.#firstRowsWait !== undefined) {
			return undefined;
		}
		this.#applyPending();
		const { start, count } = this.#shape;
		const window = rows.window(start, Math.min(count, mostWindowRows));
		const ids = window.map(({ id }) => id);
		const { matching, total } = rows;
		const shown = `${start} ${matching} ${total} ${ids.join()}`;
		if (shown === this.#shown) {
			return undefined;
		}
		this.#shown = shown;
		const unsent = window.filter(({ id }) => !this.#sent.has(id));
		this.#sent = new Set(ids);
		return { kind: "table", start, ids, rows: unsent.map(sentRow), matching, total };
	}

	close(): void {
		this.pause();
	}

	async #load(): Promise<void> {
		this.#isLoading = true;
		try {
			const types = await this.#link.typesWith(this.#request.typeKey);
			const type = types.byKey.get(this.#request.typeKey);
			if (type === undefined) {
				this.#refusal = `the server has no type ${this.#request.typeKey}, or you may not use it`;
			} else {
				this.#type = type;
				this.#rows = new SortedRows(rowFormat(type, types));
				this.#applyShape();
			}
		} catch (error) {
			this.#refusal = ConnectError.from(error).rawMessage;
		}
		this.#isLoading = false;
		if (this.#isStarted && this.#refusal === undefined) {
			this.#list.start();
		}
		this.#onChange();
	}

	#applyShape(): void {
		this.#rows?.sort(this.#shape.order);
		this.#rows?.filter(this.#shape.filter);
	}

	#receive(changes: readonly LiveChange[]): void {
		// Not spread: a snapshot that differs much may have more changes than a call has arguments.
		for (const change of changes) {
			this.#pending.push(change);
		}
		if (this.#pending.length >= mostPending) {
			this.#applyPending();
		}
		if (this.#hasFirstRows) {
			this.#onChange();
		} else if (this.#pending.length >= firstRows) {
			this.#endFirstRowsWait();
			this.#onChange(true);
		} else {
			this.#firstRowsWait ??= this.#clock.setTimer(firstRowsWaitMs, () => {
				this.#endFirstRowsWait();
				this.#onChange();
			});
		}
	}

	#endFirstRowsWait(): void {
		this.#firstRowsWait?.cancel();
		this.#firstRowsWait = undefined;
		this.#hasFirstRows = true;
	}

	#applyPending(): void {
		if (this.#rows !== undefined && this.#pending.length > 0) {
			this.#rows.apply(this.#pending, this.#clock.now());
			this.#pending = [];
		}
	}
}

function queryOf(
	{ tenancy, namePrefix, typeKey }: TableRequest,
	known: KnownType | undefined,
): LiveQuery {
	if (known === undefined) {
		throw new Error(`the list was started before its type ${typeKey} is known`);
	}
	const { type, scope } = known;
	return {
		type,
		tenancy: {
			partition: hasPartition(scope) ? tenancy.partition : "",
			namespace: hasNamespace(scope) ? tenancy.namespace : "",
		},
		namePrefix,
	};
}

function sentRow(row: ResourceRow) {
	const { id, key, name, partition, namespace, cells, status } = row;
	const { isBeingDeleted, createdMs, changedMs } = row;
	return {
		...{ id, key, name, partition, namespace, cells, status },
		...{ isBeingDeleted, createdMs, changedMs },
	};
}
