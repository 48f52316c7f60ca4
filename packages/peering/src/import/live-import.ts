import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import type { Clock } from "@plinth/runtime";

/** The state of an import, in one word for programs. */
export type ImportState =
	/** A stream is open. */
	| "Streaming"
	/** The peer is dialed. */
	| "Connecting"
	/** The peer can't be reached. */
	| "Unreachable"
	/** The Peering does not exist, or has no credential. */
	| "PeeringMissing"
	/** The address of the Peering was changed, which requires a new token: its credential is not sent to another address. */
	| "AddressChanged"
	/** The peer does not accept the credential. */
	| "Refused"
	/** The peer has deleted the peering. The copies are removed. */
	| "PeeringRemoved"
	/** The peer has no such export for this cluster. The copies are removed. */
	| "ExportMissing"
	/** The region does not offer the partition to this one. The copies are removed. */
	| "NotOffered"
	/** The partition exists already. */
	| "PartitionTaken"
	/** The peer exports more than an import may have. */
	| "TooManyCopies"
	/** The storage has no room for more. */
	| "Full"
	/** Something else has failed: see the message. */
	| "Failed";

/** What the server that runs an import knows of it beyond its record. */
export class LiveImport {
	readonly #clock: Clock;
	state: ImportState = "Connecting";
	message = "";
	/** Wall-clock times in milliseconds: see `ImportRecord`. */
	heardMs = 0;
	currentMs = 0;
	/** Whether everything that was received is stored, and the peer had nothing more to send. */
	isCurrent = false;
	/** The messages of the peer's streams, heartbeats included. */
	messages = 0;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Continues with what was recorded. */
	restore({ heardMs, currentMs }: ImportRecord): void {
		this.heardMs = Number(heardMs);
		this.currentMs = Number(currentMs);
	}

	heard(): void {
		this.heardMs = this.#clock.now();
	}

	received(): void {
		this.messages += 1;
		this.heard();
	}

	current(): void {
		this.isCurrent = true;
		this.currentMs = this.#clock.now();
	}

	/** For how long the copies have been behind; -1 if they were never complete. */
	get lagMs(): number {
		if (this.currentMs === 0) {
			return -1;
		}
		return this.isCurrent ? 0 : Math.max(0, this.#clock.now() - this.currentMs);
	}

	/** How long ago the peer was heard; -1 if never. */
	get ageMs(): number {
		return this.heardMs === 0 ? -1 : Math.max(0, this.#clock.now() - this.heardMs);
	}
}
