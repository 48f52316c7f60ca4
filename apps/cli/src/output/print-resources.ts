import { documentOf, type KnownType, type KnownTypes } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { gvkKey } from "@plinth/resource";
import type { Io } from "../io.ts";
import type { ResourceFormat } from "./output-format.ts";
import { ResourceTable } from "./resource-table.ts";
import { renderTable } from "./table.ts";

/** Options for printing resources. */
export interface PrintOptions {
	readonly io: Io;
	readonly types: KnownTypes;
	readonly format: ResourceFormat;
	readonly showTenancy: boolean;
	/** The region that was requested, `*` for all. */
	readonly region?: string | undefined;
	/** Whether one resource was requested by name. JSON is then an object instead of a list. */
	readonly isSingle: boolean;
}

/** Prints resources of one type. An empty table is reported on standard error. */
export async function printResources(
	type: KnownType,
	resources: readonly Resource[],
	options: PrintOptions,
): Promise<void> {
	const { io, types, format } = options;
	switch (format) {
		case "name":
			io.out(resources.map((resource) => `${resourceName(resource)}\n`).join(""));
			break;
		case "yaml": {
			const { toYaml } = await import("@plinth/documents/yaml");
			io.out(toYaml(...resources.map((resource) => documentOf(resource, types))));
			break;
		}
		case "json": {
			const documents = resources.map((resource) => documentOf(resource, types));
			io.out(`${JSON.stringify(options.isSingle ? documents[0] : documents, undefined, 2)}\n`);
			break;
		}
		case "table":
		case "wide": {
			if (resources.length === 0) {
				io.err(`no resources of type ${type.key}\n`);
				break;
			}
			const table = new ResourceTable(type, {
				types,
				isWide: format === "wide",
				showTenancy: options.showTenancy,
				region: options.region,
				now: () => io.clock.now(),
			});
			const rows = resources.map((resource) => table.rowOf(resource));
			io.out(renderTable(table.columns, rows, io));
		}
	}
}

/** The name of a resource as commands accept it: `catalog.v1.Service/web`. */
export function resourceName({ id }: Pick<Resource, "id">): string {
	return `${id?.type === undefined ? "" : gvkKey(id.type)}/${id?.name ?? ""}`;
}
