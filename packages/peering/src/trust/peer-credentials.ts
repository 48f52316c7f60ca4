import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import {
	type ImportingRecord,
	ImportingRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { idOf, isUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { ConnectPeer, PeerConnection } from "../connect.ts";
import { peeringLimits, protocolVersion } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { PeeringRecords, removalOf, type Stored } from "../records/peering-records.ts";
import { Peering } from "../types.ts";
import { encodeCredential, peerHeader } from "./peer-header.ts";
import type { PeeringToken } from "./peering-token.ts";
import { hashOf, newSecret } from "./secrets.ts";

/** A Peering by which this cluster dials another one. */
export interface DialedPeering {
	readonly uid: string;
	readonly name: string;
	readonly address: string;
	readonly ca: string;
}

/**
 * The side of the trust that dials: it chooses each credential, stores it, and only then tells the peer its hash. So a crash
 * or a lost response at any point leaves a step that can be repeated.
 */
export class PeerCredentials {
	readonly #backend: StorageBackend;
	readonly #records: PeeringRecords;
	readonly #identity: OwnIdentity;
	readonly #connect: ConnectPeer;
	readonly #runtime: Runtime;

	constructor(
		backend: StorageBackend,
		identity: OwnIdentity,
		connect: ConnectPeer,
		runtime: Runtime,
	) {
		this.#backend = backend;
		this.#records = new PeeringRecords(backend, runtime);
		this.#identity = identity;
		this.#connect = connect;
		this.#runtime = runtime;
	}

	/** What is stored of a peering that this cluster dials. */
	async of(peeringUid: string): Promise<ImportingRecord | undefined> {
		return (await this.#records.get("importing", peeringUid))?.value;
	}

	/** The records of all peerings that this cluster dials, by the uid of the Peering. */
	async all(): Promise<ReadonlyMap<string, ImportingRecord>> {
		const all = await this.#records.all("importing");
		return new Map(all.map(({ value }) => [value.peeringUid, value]));
	}

	/**
	 * Exchanges a token for a credential, which replaces the one that the peering had. A repeated call with the token
	 * continues where an earlier one has failed. What fails leaves the former credential as it is.
	 *
	 * @throws ConnectError of the peer.
	 */
	async establish(peering: DialedPeering, token: PeeringToken): Promise<void> {
		let stored = await this.#records.get("importing", peering.uid);
		if (stored?.value.tokenSecret !== token.secret) {
			stored = await this.#put(peering.uid, stored, {
				peeringUid: peering.uid,
				peering: peering.name,
				tokenSecret: token.secret,
				pendingPeeringId: token.peeringId,
				pendingCredential: newSecret(),
			});
		}
		const { pendingCredential } = stored.value;
		const { uid } = await this.#identity.get();
		const { cluster } = await this.#call(peering, (client, options) =>
			client.exchangeToken(
				{
					protocolVersion,
					peeringId: token.peeringId,
					secret: token.secret,
					credentialHash: hashOf(pendingCredential),
					cluster: uid,
				},
				options,
			),
		);
		if (!isUlid(cluster)) {
			throw new ConnectError("it has sent a malformed uid of the cluster", Code.Internal);
		}
		await this.#put(peering.uid, stored, {
			...{ peeringId: token.peeringId, credential: pendingCredential, nextCredential: "", cluster },
			...{ tokenSecret: "", pendingPeeringId: "", pendingCredential: "" },
			...{ address: peering.address, ca: peering.ca },
			rotatedMs: BigInt(Math.floor(this.#runtime.clock.now())),
		});
	}

	/**
	 * Replaces the credential, if it is old enough. It is sent only where it was established.
	 *
	 * @throws ConnectError of the peer.
	 */
	async rotateIfDue(peering: Pick<DialedPeering, "uid">): Promise<void> {
		let stored = await this.#records.get("importing", peering.uid);
		if (stored === undefined || stored.value.credential === "") {
			return;
		}
		const { rotatedMs, peeringId, credential, address, ca } = stored.value;
		const now = BigInt(Math.floor(this.#runtime.clock.now()));
		if (address === "" || now - rotatedMs < BigInt(peeringLimits.credentialMs)) {
			return;
		}
		if (stored.value.nextCredential === "") {
			stored = await this.#put(peering.uid, stored, { nextCredential: newSecret() });
		}
		const { nextCredential } = stored.value;
		const headers = { [peerHeader]: encodeCredential(peeringId, credential) };
		await this.#call({ address, ca }, (client, options) =>
			client.rotateCredential({ credentialHash: hashOf(nextCredential) }, { ...options, headers }),
		);
		await this.#put(peering.uid, stored, {
			...{ credential: nextCredential, nextCredential: "", rotatedMs: now },
		});
	}

	/** Removes the credentials of Peerings that are gone: each is read again, since one may have been created meanwhile. */
	async forgetRemoved(): Promise<void> {
		for (const stored of await this.#records.all("importing")) {
			const { peering, peeringUid } = stored.value;
			const found = await this.#backend.lookup(idOf(Peering, peering), { consistency: "strong" });
			if (found?.id?.uid !== peeringUid) {
				await this.#backend.commit([removalOf(stored)]);
			}
		}
	}

	async #put(
		peeringUid: string,
		stored: Stored<ImportingRecord> | undefined,
		change: Partial<ImportingRecord>,
	): Promise<Stored<ImportingRecord>> {
		const before = stored?.value ?? create(ImportingRecordSchema);
		const value = create(ImportingRecordSchema, { ...before, ...change });
		const put = this.#records.put("importing", peeringUid, value, stored);
		const { resources } = await this.#backend.commit([put]);
		return { value, resource: resources[0] ?? put.resource };
	}

	async #call<T>(
		peering: Pick<DialedPeering, "address" | "ca">,
		call: (client: ExchangeClient, options: { readonly timeoutMs: number }) => Promise<T>,
	): Promise<T> {
		const connection = this.#connect(peering);
		try {
			return await call(exchangeClient(connection), { timeoutMs: peeringLimits.callMs });
		} finally {
			connection.close();
		}
	}
}

/** A client of the service that a peer offers to this cluster. */
export type ExchangeClient = ReturnType<typeof exchangeClient>;

/** Creates a client on a connection. */
export function exchangeClient({ transport }: PeerConnection) {
	return createClient(PeerExchangeService, transport);
}
