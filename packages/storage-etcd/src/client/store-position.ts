import type { ResponseHeader } from "../gen/etcdserverpb/rpc_pb.ts";

/** The known position of an etcd cluster at one moment. */
export interface Position {
	readonly revision: bigint;
}

/** Another cluster responds than at first. Nothing was lost: the endpoints belong to two clusters. */
export class OtherCluster extends Error {
	constructor(known: bigint, current: bigint) {
		super(
			`etcd cluster ${hexadecimal(current)} responds, but this server has started with cluster ${hexadecimal(known)}: etcd was restored as a new cluster, or the endpoints belong to two clusters`,
		);
		this.name = "OtherCluster";
	}
}

/** The cluster has less than it had before. */
export class WentBack extends Error {
	constructor(known: bigint, current: bigint) {
		super(`etcd is at revision ${current}, before revision ${known} that this server has seen`);
		this.name = "WentBack";
	}
}

/**
 * The known position of the cluster, from the headers of its responses.
 *
 * Linearizable responses of one cluster never go back: a response is at least as new as the cluster when the
 * request was sent, whichever member sends it. Responses of watches and leases come from the state of one
 * member, which may be behind, and are not compared.
 *
 * The Raft term in a header proves nothing and is ignored. It is the term of the last log entry that the member
 * has applied itself: a member that catches up by a snapshot keeps its old term until the next entry.
 */
export class StorePosition {
	readonly #listeners = new Set<(broken: OtherCluster | WentBack) => void>();
	#cluster: bigint | undefined;
	#revision = 0n;

	/** The position known now. Read it before sending a request. */
	get known(): Position {
		return { revision: this.#revision };
	}

	/** Registers a listener that is called before `check` throws. */
	onBroken(listener: (broken: OtherCluster | WentBack) => void): void {
		this.#listeners.add(listener);
	}

	/** Records a revision that was not observed in a header. */
	reached(revision: bigint): void {
		if (revision > this.#revision) {
			this.#revision = revision;
		}
	}

	/**
	 * Records the header of a linearizable response.
	 *
	 * @param before The position known when the request was sent.
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
