import { create } from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import type { WatchEnd } from "@plinth/proto";

/** The status of a watch that has ended, as WatchSet sends it. Without a failure, its code is 0. */
export function endOfWatch(failure: ConnectError | undefined): WatchEnd {
	return {
		$typeName: "plinth.resource.v1.WatchEnd",
		code: failure?.code ?? 0,
		message: failure?.rawMessage ?? "",
		details: failure?.details.map(detailOf) ?? [],
	};
}

/** A detail in its form on the wire. It comes from this server, or from another deployment that this one has called. */
function detailOf(detail: ConnectError["details"][number]): Any {
	return "desc" in detail
		? anyPack(detail.desc, create(detail.desc, detail.value))
		: {
				$typeName: "google.protobuf.Any",
				typeUrl: `type.googleapis.com/${detail.type}`,
				value: detail.value,
			};
}
