import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEnd, WatchEvent } from "@plinth/proto";
import type { ResourceChange, WatchUpdate } from "./watch-update.ts";

/** What a watch has received so far, across streams. */
export class WatchState {
	readonly #onUpdate: (update: WatchUpdate) => void;
	/** The version after which the watch resumes; empty to begin with a snapshot. */
	#afterVersion: string;
	#isInSnapshot = false;
	/** The changes of a commit whose last change has not come: after a loss, the server sends all of them again. */
	#incomplete: ResourceChange[] = [];

	constructor(afterVersion: string, onUpdate: (update: WatchUpdate) => void) {
		this.#afterVersion = afterVersion;
		this.#onUpdate = onUpdate;
	}

	get afterVersion(): string {
		return this.#afterVersion;
	}

	/** Whether a snapshot is on its way, which begins again if the stream ends now. */
	get isInSnapshot(): boolean {
		return this.#isInSnapshot;
	}

	/** A stream begins that has this watch. */
	begin(): void {
		this.#incomplete = [];
		this.#isInSnapshot = this.#afterVersion === "";
		if (this.#isInSnapshot) {
			this.#onUpdate({ kind: "snapshot-begins" });
		}
	}

	/** The stream, or the watch in it, has ended. */
	lose(): void {
		this.#isInSnapshot = false;
		this.#incomplete = [];
	}

	/** The server can't resume the watch at its version. */
	restart(): void {
		this.#afterVersion = "";
	}

	/** The server has ended the watch alone, which is repeated. */
	interrupt(error: ConnectError): void {
		this.#onUpdate({ kind: "lost", error });
	}

	/** The server refuses the watch. */
	end(error: ConnectError): void {
		this.#onUpdate({ kind: "ended", error });
	}

	receive({ event, version }: WatchEvent): void {
		switch (event.case) {
			case "upsert":
			case "delete":
				if (event.value.resource !== undefined) {
					this.#change({ kind: event.case, resource: event.value.resource }, version);
				}
				break;
			case "endOfSnapshot":
				this.#isInSnapshot = false;
				this.#afterVersion = version;
				this.#onUpdate({ kind: "snapshot-complete", version });
				break;
			default:
				// A bookmark, or an event of a later version of the API, which has a position all the same.
				if (version !== "" && !this.#isInSnapshot) {
					this.#reach(version);
				}
		}
	}

	#change(change: ResourceChange, version: string): void {
		if (this.#isInSnapshot) {
			this.#onUpdate({ kind: "present", resource: change.resource });
			return;
		}
		this.#incomplete.push(change);
		if (version !== "") {
			this.#reach(version);
		}
	}

	/** All up to that version has come: the watch resumes after it, so what waits for the end of its commit must not be lost. */
	#reach(version: string): void {
		const changes = this.#incomplete;
		this.#incomplete = [];
		this.#afterVersion = version;
		this.#onUpdate(
			changes.length > 0 ? { kind: "changes", changes, version } : { kind: "current", version },
		);
	}
}

/** The error of a watch that has ended. */
export function errorOf({ code, message, details }: WatchEnd): ConnectError {
	const error = new ConnectError(message || "the server ended the watch", codeOf(code));
	error.details = details.map(({ typeUrl, value }) => ({
		type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
		value,
	}));
	return error;
}

function codeOf(code: number): Code {
	if (code === 0) {
		return Code.Unavailable;
	}
	return Code[code] === undefined ? Code.Unknown : code;
}

/** Whether a watch or a stream that has failed may succeed if it is repeated. */
export function isTransient({ code }: ConnectError): boolean {
	switch (code) {
		case Code.Unavailable:
		case Code.Aborted:
		case Code.OutOfRange:
		case Code.ResourceExhausted:
		case Code.DeadlineExceeded:
		case Code.Internal:
		case Code.Unknown:
		case Code.Canceled:
			return true;
		default:
			return false;
	}
}

/** Whether the server has said that the watch can't resume at its version. */
export function isOutdated({ code }: ConnectError): boolean {
	return code === Code.Aborted || code === Code.OutOfRange;
}
