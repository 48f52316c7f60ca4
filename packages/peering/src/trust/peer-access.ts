import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	type ExchangeTokenRequest,
	PeeringRemovedSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import {
	type ExportingRecord,
	ExportingRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { decodeShared, idOf, isUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { ReadOptions, StorageBackend } from "@plinth/storage";
import { peeringLimits, protocolVersion } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { PeeringRecords, Record, removalOf, type Stored } from "../records/peering-records.ts";
import { Peering } from "../types.ts";
import { decodeCredential, peerHeader } from "./peer-header.ts";
import { hashOf, isSameHash } from "./secrets.ts";

/** A cluster that calls this one. */
export interface Peer {
	/** The uid of its Peering. */
	readonly peeringId: string;
	/** The name of its Peering. */
	readonly name: string;
	/** The uid of the cluster. */
	readonly cluster: string;
	/** The hash of the credential with which it calls. */
	readonly credentialHash: Uint8Array;
}

/** Admits a call of a peer, whose credential was checked. @throws ConnectError if it is refused. */
export type AdmitPeer = (call: HandlerContext, peer: Pick<Peer, "name">) => void;

/** Whether a stored resource is the record of a peer, and accepts a credential. */
export function acceptsCredential(resource: Resource, credentialHash: Uint8Array): boolean {
	const { record } = decodeShared(Record, resource).data;
	return (
		record.case === "exporting" &&
		[record.value.credentialHash, record.value.nextCredentialHash].some((each) =>
			isSameHash(each, credentialHash),
		)
	);
}

const none = new Uint8Array();

/**
 * Callers without a credential must not cause reads of a storage over the network. What is decided on an older record is
 * either a refusal or a commit that expects this record.
 */
const fromMemory: ReadOptions = { consistency: "eventual" };

/**
 * The side of the trust that is dialed: checks tokens and credentials against their hashes.
 *
 * ```
 *   token created ──▶ exchanged for a credential ──▶ next credential added ──▶ next one used: the former is void
 *                         (repeated: same effect)         (repeated: same effect)
 * ```
 *
 * Each step is one commit, and can be repeated after a lost response: the caller chooses the credential before it asks.
 */
export class PeerAccess {
	readonly #backend: StorageBackend;
	readonly #records: PeeringRecords;
	readonly #identity: OwnIdentity;
	readonly #runtime: Runtime;
	readonly #admit: AdmitPeer;

	/** @param admit - called once with each call whose credential is valid, before anything is written. */
	constructor(backend: StorageBackend, identity: OwnIdentity, runtime: Runtime, admit: AdmitPeer) {
		this.#backend = backend;
		this.#records = new PeeringRecords(backend, runtime);
		this.#identity = identity;
		this.#runtime = runtime;
		this.#admit = admit;
	}

	/** Stores the hash of a new token for the peering, in place of a former one that was not used. */
	async addToken(peering: { uid: string; name: string }, secret: string): Promise<void> {
		const stored = await this.#records.get("exporting", peering.uid);
		const value = create(ExportingRecordSchema, {
			...(stored?.value ?? create(ExportingRecordSchema)),
			peeringUid: peering.uid,
			peering: peering.name,
			tokenHash: hashOf(secret),
			tokenExpiresMs: BigInt(Math.floor(this.#runtime.clock.now()) + peeringLimits.tokenMs),
		});
		await this.#backend.commit([this.#records.put("exporting", peering.uid, value, stored)]);
	}

	/**
	 * Makes a token valid for one credential.
	 *
	 * @returns the peer.
	 * @throws ConnectError Unauthenticated if the token is unknown, used or expired; InvalidArgument.
	 */
	async exchange(request: ExchangeTokenRequest): Promise<Peer> {
		checkVersion(request.protocolVersion);
		const { peeringId, secret, credentialHash, cluster } = request;
		if (credentialHash.length !== 32 || !isUlid(cluster)) {
			throw new ConnectError(
				"credential_hash must be a SHA-256, and cluster a ULID",
				Code.InvalidArgument,
			);
		}
		const stored = isUlid(peeringId)
			? await this.#records.get("exporting", peeringId, fromMemory)
			: undefined;
		const known = stored?.value;
		const sent = hashOf(secret);
		const isRepeated =
			known !== undefined &&
			isSameHash(known.usedTokenHash, sent) &&
			isSameHash(known.credentialHash, credentialHash);
		if (known === undefined || !(isRepeated || isSameHash(known.tokenHash, sent))) {
			throw new ConnectError(
				"the token is unknown, was used, or was replaced by a newer one: create another one",
				Code.Unauthenticated,
			);
		}
		const peer = await this.#peerOf(known, cluster, credentialHash);
		if (isRepeated) {
			return peer;
		}
		if (BigInt(Math.floor(this.#runtime.clock.now())) > known.tokenExpiresMs) {
			throw new ConnectError(
				"the token has expired, an hour after it was created: create another one",
				Code.Unauthenticated,
			);
		}
		if (cluster === (await this.#identity.get()).uid) {
			throw new ConnectError(
				"the token was created by this cluster itself: use it in another one",
				Code.InvalidArgument,
			);
		}
		const value = create(ExportingRecordSchema, {
			...known,
			...{ tokenHash: none, usedTokenHash: sent, credentialHash, cluster },
			nextCredentialHash: none,
		});
		await this.#backend.commit([this.#records.put("exporting", peeringId, value, stored)]);
		return peer;
	}

	/**
	 * The peer that makes a call. Called once for each call, which it admits.
	 *
	 * @throws ConnectError Unauthenticated; FailedPrecondition with PeeringRemoved if its Peering was deleted; what refuses
	 *   to admit the call.
	 */
	async authenticate(call: HandlerContext): Promise<Peer> {
		const { peer } = await this.#authenticated(call);
		return peer;
	}

	/** Adds the next credential of the peer that makes a call. @throws as `authenticate`. */
	async rotate(call: HandlerContext, nextCredentialHash: Uint8Array<ArrayBuffer>): Promise<void> {
		const { peer, stored } = await this.#authenticated(call);
		if (nextCredentialHash.length !== 32) {
			throw new ConnectError("credential_hash must be a SHA-256", Code.InvalidArgument);
		}
		if (isSameHash(stored.value.credentialHash, nextCredentialHash)) {
			return;
		}
		const value = create(ExportingRecordSchema, { ...stored.value, nextCredentialHash });
		await this.#backend.commit([this.#records.put("exporting", peer.peeringId, value, stored)]);
	}

	/** The records of all peers, by the uid of the Peering. */
	async peers(): Promise<ReadonlyMap<string, ExportingRecord>> {
		const all = await this.#records.all("exporting");
		return new Map(all.map(({ value }) => [value.peeringUid, value]));
	}

	/** Notes which Peerings were deleted, and forgets those that were deleted long ago. */
	async forgetRemoved(): Promise<void> {
		const now = BigInt(Math.floor(this.#runtime.clock.now()));
		for (const stored of await this.#records.all("exporting")) {
			const { value } = stored;
			const isThere = await this.#exists(value);
			if (!isThere && value.removedMs === 0n) {
				const noted = create(ExportingRecordSchema, { ...value, removedMs: now });
				const put = this.#records.put("exporting", value.peeringUid, noted, stored);
				await this.#backend.commit([put]);
			} else if (!isThere && now - value.removedMs > BigInt(peeringLimits.removedPeerMs)) {
				await this.#backend.commit([removalOf(stored)]);
			}
		}
	}

	async #authenticated(
		call: HandlerContext,
	): Promise<{ readonly peer: Peer; readonly stored: Stored<ExportingRecord> }> {
		const sent = decodeCredential(call.requestHeader.get(peerHeader));
		const stored = sent && (await this.#records.get("exporting", sent.peeringId, fromMemory));
		const hash = hashOf(sent?.secret ?? "");
		const isNext = stored !== undefined && isSameHash(stored.value.nextCredentialHash, hash);
		if (stored === undefined || !(isNext || isSameHash(stored.value.credentialHash, hash))) {
			throw new ConnectError(
				`the credential of the peer, in the header ${peerHeader}, is missing or not valid: establish the peering again, with the address of a server: an agent does not pass it on`,
				Code.Unauthenticated,
			);
		}
		const peer = await this.#peerOf(stored.value, stored.value.cluster, hash);
		this.#admit(call, peer);
		if (!isNext) {
			return { peer, stored };
		}
		const value = create(ExportingRecordSchema, {
			...stored.value,
			...{ credentialHash: hash, nextCredentialHash: none },
		});
		const put = this.#records.put("exporting", peer.peeringId, value, stored);
		const { resources } = await this.#backend.commit([put]);
		return { peer, stored: { value, resource: resources[0] ?? put.resource } };
	}

	async #peerOf(
		record: ExportingRecord,
		cluster: string,
		credentialHash: Uint8Array,
	): Promise<Peer> {
		if (!(await this.#exists(record))) {
			throw new ConnectError(
				`the other cluster has deleted the Peering ${record.peering}, by which it knew this one: establish the peering again with a new token, or delete its Imports`,
				Code.FailedPrecondition,
				undefined,
				[{ desc: PeeringRemovedSchema, value: {} }],
			);
		}
		return { peeringId: record.peeringUid, name: record.peering, cluster, credentialHash };
	}

	async #exists({ peering, peeringUid }: ExportingRecord): Promise<boolean> {
		const stored = await this.#backend.lookup(idOf(Peering, peering));
		return stored?.id?.uid === peeringUid;
	}
}

/**
 * Checks the version of the protocol that a peer speaks.
 *
 * @throws ConnectError FailedPrecondition that names both versions.
 */
export function checkVersion(version: number): void {
	if (version !== protocolVersion) {
		throw new ConnectError(
			`the protocol of peerings has version ${protocolVersion} here, and version ${version} in the calling cluster: upgrade the older one`,
			Code.FailedPrecondition,
		);
	}
}
