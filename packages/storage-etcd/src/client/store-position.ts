import type { ResponseHeader } from "../gen/etcdserverpb/rpc_pb.ts";

/** How far an etcd cluster was known to be at some moment. */
export interface Position {
	readonly revision: bigint;
}

/** Another cluster answers than the one that answered first. Nothing was lost: the endpoints are of two clusters. */
export class OtherCluster extends Error {
	constructor(known: bigint, answered: bigint) {
		super(
			`etcd cluster ${hexadecimal(answered)} answers, and this server has started with cluster ${hexadecimal(known)}: etcd was restored as a new cluster, or the endpoints belong to two clusters`,
		);
		this.name = "OtherCluster";
	}
}

/** The cluster has less than it had before. */
export class WentBack extends Error {
	constructor(known: bigint, answered: bigint) {
		super(`etcd is at revision ${answered}, before revision ${known} that this server has seen`);
		this.name = "WentBack";
	}
}

/**
 * How far the cluster is known to be, from the headers of its responses.
 *
 * Linearizable responses of one cluster never go back: what is true of etcd when a request is sent is true
 * of its response, whichever member sends it. Responses of watches and leases come from what one member
 * has, which may be behind, and are not compared.
 *
 * The Raft term in a header proves nothing and is ignored. It is the term of the last log entry that the member
 * has applied by itself: a member that catches up by a snapshot keeps its old term until the next entry.
 */
export class StorePosition {
	readonly #listeners = new Set<(broken: OtherCluster | WentBack) => void>();
	#cluster: bigint | undefined;
	#revision = 0n;

	/** What is known now: to be taken before a request is sent. */
	get known(): Position {
		return { revision: this.#revision };
	}

	/** Calls back before `check` throws. */
	onBroken(listener: (broken: OtherCluster | WentBack) => void): void {
		this.#listeners.add(listener);
	}

	/** Takes note of a revision that was observed in another way than by a header. */
	reached(revision: bigint): void {
		if (revision > this.#revision) {
			this.#revision = revision;
		}
	}

	/**
	 * Takes note of the header of a linearizable response.
	 *
	 * @param before What was known when the request was sent.
	 * @throws OtherCluster; WentBack.
	 */
	check(before: Position, header: ResponseHeader | undefined): void {
		if (header === undefined) {
			return;
		}
		const { clusterId, revision } = header;
		this.#cluster ??= clusterId;
		if (clusterId !== this.#cluster) {
			throw this.#broken(new OtherCluster(this.#cluster, clusterId));
		}
		if (revision < before.revision) {
			throw this.#broken(new WentBack(before.revision, revision));
		}
		this.reached(revision);
	}

	#broken(error: OtherCluster | WentBack): OtherCluster | WentBack {
		for (const listener of this.#listeners) {
			listener(error);
		}
		return error;
	}
}

function hexadecimal(id: bigint): string {
	return id.toString(16);
}
