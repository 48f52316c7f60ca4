import { type KnownTypes, loadTypes } from "@plinth/documents";
import { TypeService } from "@plinth/proto/gen/plinth/type/v1/type_service_pb.js";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { type Connection, useConnection } from "./connection.ts";

/** Loads the types that the caller may use. They change only with the server. */
export function typesQuery(connection: Connection) {
	return queryOptions({
		queryKey: ["types", connection.session.token === "" ? "" : "token"],
		queryFn: () => loadTypes(connection.client(TypeService)),
		staleTime: 60_000,
	});
}

/** The types that the caller may use; `undefined` while they are loading. */
export function useTypes(): KnownTypes | undefined {
	return useQuery(typesQuery(useConnection())).data;
}
