import { ResourceService } from "@plinth/proto";
import { Namespace, Partition, typeOf } from "@plinth/resource";
import { useQuery } from "@tanstack/react-query";
import { useConnection } from "../app/connection.ts";
import { Field } from "../parts/field.tsx";

/** So many partitions or namespaces are offered. */
const mostUnits = 1_000;

/** Picks a partition, or a namespace. */
export function TenancyPicker({
	unit,
	partition,
	value,
	onChange,
}: {
	readonly unit: "partition" | "namespace";
	/** That of the namespaces; `*` for all. */
	readonly partition: string;
	/** `*` for all. */
	readonly value: string;
	readonly onChange: (value: string) => void;
}) {
	const names = useUnits(unit, partition);
	const label = unit === "partition" ? "Partition" : "Namespace";
	// What a link names is offered, too.
	const offered = [...new Set([...names, ...(value === "*" ? [] : [value])])].sort();
	return (
		<Field label={label}>
			<select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
				<option value="*">all</option>
				{offered.map((name) => (
					<option key={name} value={name}>
						{name}
					</option>
				))}
			</select>
		</Field>
	);
}

/** The names of the units that the caller may list. */
function useUnits(unit: "partition" | "namespace", partition: string): readonly string[] {
	const connection = useConnection();
	const { data } = useQuery({
		queryKey: ["tenancy", unit, unit === "partition" ? "" : partition],
		queryFn: async ({ signal }) => {
			const { resources } = await connection.client(ResourceService).list(
				{
					type: typeOf((unit === "partition" ? Partition : Namespace).type),
					tenancy: { partition: unit === "partition" ? "" : partition, namespace: "" },
					pageSize: mostUnits,
				},
				{ signal },
			);
			return resources.map(({ id }) => id?.name ?? "");
		},
	});
	return data ?? [];
}
