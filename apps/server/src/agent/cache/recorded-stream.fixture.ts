import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEvent } from "@plinth/proto";
import { expect, onTestFinished, vi } from "vitest";

/** A stream that remembers what it has received, and how it has ended. */
export class RecordedStream<Message> {
	readonly messages: Message[] = [];
	failure: ConnectError | undefined;
	readonly #end = new AbortController();

	constructor(open: (signal: AbortSignal) => AsyncIterable<Message>) {
		onTestFinished(() => this.close());
		void this.#read(open(this.#end.signal));
	}

	/** Repeats a check of what has come until it passes. */
	async until(check: (messages: readonly Message[]) => void): Promise<void> {
		await vi.waitFor(() => check(this.messages), { timeout: 300_000 });
	}

	/** Waits until it has ended, and returns the code; `Unknown` if it has ended without an error. */
	async ended(): Promise<string> {
		await this.until(() => expect(this.failure).toBeDefined());
		return Code[this.failure?.code ?? 0] ?? "";
	}

	close(): void {
		this.#end.abort();
	}

	async #read(messages: AsyncIterable<Message>): Promise<void> {
		try {
			for await (const message of messages) {
				this.messages.push(message);
			}
			this.failure = new ConnectError("the stream has ended");
		} catch (failure) {
			this.failure = ConnectError.from(failure);
		}
	}
}

/** What a watch has shown: `upsert` or `delete`, with the name of the resource. */
export function changesIn(events: readonly WatchEvent[]): readonly string[] {
	return events.flatMap(({ event }) =>
		event.case === "upsert" || event.case === "delete"
			? [`${event.case} ${event.value.resource?.id?.name}`]
			: [],
	);
}

/** The last version that another watch may resume after. */
export function versionAfter(events: readonly WatchEvent[]): string {
	return events.findLast(({ version }) => version !== "")?.version ?? "";
}

/** Whether the snapshot of a watch is complete. */
export function isLive(events: readonly WatchEvent[]): boolean {
	return events.some(({ event }) => event.case === "endOfSnapshot");
}
