import type { ID, Resource } from "@plinth/proto";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type Connection, useConnection } from "../app/connection.ts";

/** What is read about a resource in a single call: read again with each version of it. */
export function useDetail<Detail>(
	name: string,
	{ id, version }: Pick<Resource, "id" | "version">,
	read: (connection: Connection, id: ID, signal: AbortSignal) => Promise<Detail>,
) {
	const connection = useConnection();
	const { partition = "", namespace = "" } = id?.tenancy ?? {};
	return useQuery({
		queryKey: [name, id?.type?.kind, id?.type?.group, partition, namespace, id?.name, version],
		enabled: id !== undefined,
		// What is shown stays until it is replaced.
		placeholderData: keepPreviousData,
		queryFn: ({ signal }) => read(connection, id as ID, signal),
	});
}
