import type { Any } from "@bufbuild/protobuf/wkt";
import type { KnownType, KnownTypes } from "@plinth/documents";
import { columnsOf, type DataColumn, isObject, showData } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { isMarkedForDeletion, ulidTimeMs } from "@plinth/resource";
import { type StatusSummary, statusOf } from "../model/conditions.ts";

/** How the rows of a type are made. */
export interface RowFormat {
	readonly columns: readonly DataColumn[];
	readonly types: Pick<KnownTypes, "messages">;
}

/** The format of a type's rows. */
export function rowFormat({ schema }: Pick<KnownType, "schema">, types: KnownTypes): RowFormat {
	return { columns: columnsOf(schema), types };
}

let lastId = 0;

/**
 * A resource as a row. It keeps what can be shown, and decodes the data when that is needed: of 100,000 rows, few are visible.
 *
 * Rows don't change: a changed resource has a new one.
 */
export class ResourceRow {
	/** Identifies the row among all rows of the worker. */
	readonly id: number;
	/** The key of the resource's name. */
	readonly key: string;
	readonly name: string;
	readonly partition: string;
	readonly namespace: string;
	readonly isBeingDeleted: boolean;
	/** In milliseconds since the epoch. */
	readonly createdMs: number | undefined;
	/** When it changed while it was being watched, in milliseconds since the epoch. */
	readonly changedMs: number | undefined;
	readonly #format: RowFormat;
	readonly #data: Any | undefined;
	#status: StatusSummary;
	#cells: readonly string[] | undefined;
	#searchText: string | undefined;

	constructor(key: string, resource: Resource, format: RowFormat, changedMs?: number) {
		const { id, data } = resource;
		lastId += 1;
		this.id = lastId;
		this.key = key;
		this.name = id?.name ?? "";
		this.partition = id?.tenancy?.partition ?? "";
		this.namespace = id?.tenancy?.namespace ?? "";
		this.isBeingDeleted = isMarkedForDeletion(resource);
		this.createdMs = ulidTimeMs(id?.uid ?? "");
		this.changedMs = changedMs;
		this.#status = statusOf(resource);
		this.#format = format;
		this.#data = data;
	}

	/** One for each column of the format. */
	get cells(): readonly string[] {
		return this.#cells ?? this.#decode();
	}

	get status(): StatusSummary {
		// Data that can't be decoded is a part of it.
		if (this.#cells === undefined) {
			this.#decode();
		}
		return this.#status;
	}

	/** What a text filter searches, in lower case. */
	get searchText(): string {
		this.#searchText ??= [
			this.partition,
			this.namespace,
			this.name,
			...this.cells,
			this.status.text,
		]
			.join("\n")
			.toLowerCase();
		return this.#searchText;
	}

	#decode(): readonly string[] {
		const { json, error } = showData(this.#data, this.#format.types);
		const fields = error === undefined && isObject(json) ? json : {};
		const cells = this.#format.columns.map(({ cellOf }) => cellOf(fields));
		this.#cells = cells;
		if (error !== undefined) {
			const text = [error, this.#status.text].filter(Boolean).join(", ");
			this.#status = { text, tone: "bad" };
		}
		return cells;
	}
}
