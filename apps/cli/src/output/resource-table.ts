import type { JsonObject } from "@bufbuild/protobuf";
import {
	columnsOf,
	type DataColumn,
	type KnownType,
	type KnownTypes,
	showData,
	wideColumnsOf,
} from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { displayName, hasNamespace, hasPartition } from "@plinth/resource";
import { decodeTime } from "ulid";
import { allRegions } from "../api/regions.ts";
import { shortDuration } from "../configuration/duration.ts";
import { statusCell } from "./conditions.ts";
import { type Cell, plainCell, type Row, type TableColumn } from "./table.ts";

/** Options of a resource table. */
export interface ResourceTableOptions {
	readonly types: KnownTypes;
	/** Whether there are columns for partition and namespace. */
	readonly showTenancy: boolean;
	/** The region that was requested, if any: there is a column for it if it is `*`, or if the table is wide. */
	readonly region?: string | undefined;
	/** Whether there are all fields of the data that fit into a cell, and uid, version and owner. */
	readonly isWide: boolean;
	/** The current time in milliseconds since the epoch, for ages. */
	readonly now: () => number;
}

/** Resources of one type as rows: tenancy, name, the columns of the type, status and age. */
export class ResourceTable {
	readonly columns: readonly TableColumn[];
	readonly #dataColumns: readonly DataColumn[];
	readonly #options: ResourceTableOptions;
	readonly #units: readonly ("partition" | "namespace")[];
	readonly #showRegion: boolean;

	constructor(type: KnownType, options: ResourceTableOptions) {
		this.#options = options;
		this.#dataColumns = options.isWide ? wideColumnsOf(type.schema) : columnsOf(type.schema);
		this.#units = options.showTenancy
			? [
					...(hasPartition(type.scope) ? (["partition"] as const) : []),
					...(hasNamespace(type.scope) ? (["namespace"] as const) : []),
				]
			: [];
		this.#showRegion =
			options.region === allRegions || (options.isWide && options.region !== undefined);
		this.columns = [
			...(this.#showRegion ? [{ heading: "REGION", cut: false }] : []),
			...this.#units.map((unit) => ({ heading: unit.toUpperCase(), cut: false })),
			{ heading: "NAME", cut: false },
			...this.#dataColumns.map(({ heading }, at) => ({ heading, cut: true, priority: 2 + at })),
			{ heading: "STATUS", cut: true, readableWidth: 20 },
			{ heading: "AGE", cut: false, priority: 1 },
			...(options.isWide ? wideColumns : []),
		];
	}

	rowOf(resource: Resource): Row {
		const { id, data } = resource;
		const { json, error } =
			data === undefined
				? { json: {}, error: undefined }
				: { error: undefined, ...showData(data, this.#options.types) };
		const isFields = error === undefined && typeof json === "object" && json !== null;
		const fields: JsonObject = isFields && !Array.isArray(json) ? json : {};
		return [
			...(this.#showRegion ? [plainCell(id?.region ?? "")] : []),
			...this.#units.map((unit) => plainCell(id?.tenancy?.[unit] ?? "")),
			plainCell(id?.name ?? ""),
			...this.#dataColumns.map(({ cellOf }) => plainCell(cellOf(fields))),
			error === undefined ? statusCell(resource) : withError(error, statusCell(resource)),
			plainCell(ageOf(resource, this.#options.now())),
			...(this.#options.isWide ? wideCells(resource) : []),
		];
	}
}

/** The further columns of a wide table. */
const wideColumns: readonly TableColumn[] = [
	{ heading: "VERSION", cut: false, priority: 1_000 },
	{ heading: "UID", cut: false, priority: 1_002 },
	{ heading: "OWNER", cut: true, priority: 1_001 },
];

function wideCells({ id, version, owner }: Resource): Row {
	const ownerText = owner === undefined ? "" : displayName(owner);
	return [version, id?.uid ?? "", ownerText].map(plainCell);
}

/** The status of a resource with undecodable data. */
function withError(error: string, { text }: Cell): Cell {
	return { text: text === "" ? error : `${error}, ${text}`, tone: "bad" };
}

/** The age of a resource, from the time in its uid. */
function ageOf(resource: Resource, now: number): string {
	const createdMs = createdAtMs(resource);
	return createdMs === undefined ? "" : shortDuration(now - createdMs);
}

/** When a resource was created, in milliseconds since the epoch. */
export function createdAtMs({ id }: Resource): number | undefined {
	try {
		return decodeTime(id?.uid ?? "");
	} catch {
		return undefined;
	}
}
