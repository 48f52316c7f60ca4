import type { Controller } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { ControllerService } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { useQuery } from "@tanstack/react-query";
import { useConnection } from "../app/connection.ts";

/**
 * All controllers of the cluster, at most a minute old. `undefined` while they are loading, and for callers who may not see
 * them.
 */
export function useAllControllers(): readonly Controller[] | undefined {
	const connection = useConnection();
	return useQuery({
		queryKey: ["controllers"],
		queryFn: ({ signal }) => connection.client(ControllerService).listControllers({}, { signal }),
		staleTime: 60_000,
	}).data?.controllers;
}
