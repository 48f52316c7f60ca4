import { contentOf, Good, privatePrefix } from "@plinth/peering/testing";
import type { Resource } from "@plinth/proto";
import type { StreamResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { decodeShared } from "@plinth/resource";
import type { Cluster } from "../cluster/cluster.ts";
import { isIn } from "../goods.ts";

/** What one cluster copies from another. */
export interface Copying {
	readonly from: Cluster;
	readonly to: Cluster;
	/** The partition at home. */
	readonly source: string;
	/** The name of the Export and the Import, and the partition of the copies. */
	readonly name: string;
}

/** Text that no peer may be sent: of private names, and of masked fields. */
const privateText = [privatePrefix, "secret of "];

/** What is wrong with bytes that a peer is sent. */
export function judgeBytes(bytes: Uint8Array): readonly string[] {
	const text = Buffer.from(bytes).toString("latin1");
	return privateText
		.filter((each) => text.includes(each))
		.map((each) => `a peer is sent bytes with "${each}"`);
}

/** What is wrong with a message of an export. @param receiver - the uid of the cluster that it is for. */
export function judgeMessage({ message }: StreamResponse, receiver: string): readonly string[] {
	if (message.case !== "upsert" || message.value.resource === undefined) {
		return [];
	}
	const { origin, owner, metadata, id } = message.value.resource;
	const isBack = origin?.cluster === receiver || origin?.path.includes(receiver);
	const hasMore = owner !== undefined || "finalizers" in metadata;
	const { secret } = decodeShared(Good, message.value.resource).data;
	return [
		...(isBack ? [`${id?.name} is sent back to its cluster`] : []),
		...(hasMore ? [`${id?.name} is sent with what stays at home`] : []),
		...(secret === "" ? [] : [`${id?.name} is sent with a masked field`]),
	];
}

/** How copies differ from what is exported now. @param receiver - the uid of the cluster that has the copies. */
export function differences(copying: Copying, receiver: string): readonly string[] {
	const { from, to, source, name } = copying;
	const offered = goodsIn(from, source).filter(
		({ id, origin }) =>
			!id?.name.startsWith(privatePrefix) && !(origin?.path.includes(receiver) ?? false),
	);
	const wanted = new Map(offered.map((each) => [each.id?.name, contentOf(each)]));
	const copies = new Map(goodsIn(to, name).map((each) => [each.id?.name, contentOf(each)]));
	return [
		...[...wanted]
			.filter(([key, content]) => copies.get(key) !== content)
			.map(([key, content]) => `${name}: ${copies.get(key)} instead of ${content} (${key})`),
		...[...copies.keys()]
			.filter((key) => !wanted.has(key))
			.map((key) => `${name}: ${key} is stale`),
	];
}

function goodsIn(cluster: Cluster, partition: string): readonly Resource[] {
	return [...cluster.history.last.goods.values()].filter(isIn(partition));
}
