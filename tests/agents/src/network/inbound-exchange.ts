import type { Fields, InboundCall, InboundListener } from "@plinth/forwarding";
import type { Callee, Exchange } from "./exchange.ts";

/** A call that has arrived at an agent. */
export class InboundExchange implements InboundCall, Callee {
	readonly authority = "agent";
	readonly clientAddress = "";
	readonly #exchange: Exchange;
	readonly #body: (Uint8Array | "end")[] = [];
	#wake: (() => void) | undefined;
	#listener: InboundListener | undefined;

	constructor(exchange: Exchange) {
		this.#exchange = exchange;
		exchange.callee = this;
	}

	get method(): string {
		return this.#exchange.head.method;
	}

	get target(): string {
		return this.#exchange.head.target;
	}

	header(name: string): string | undefined {
		return this.#exchange.head.headers[name];
	}

	headers(): Iterable<readonly [string, string]> {
		return Object.entries(this.#exchange.head.headers);
	}

	take(): Uint8Array | "end" | undefined {
		return this.#body.shift();
	}

	wait(wake: () => void): void {
		this.#wake = wake;
	}

	respond(status: number, fields: Fields): void {
		this.#exchange.respond(status, fields);
	}

	write(chunk: Uint8Array): Promise<void> | undefined {
		return this.#exchange.write(chunk);
	}

	end(trailers: Fields = {}): void {
		this.#exchange.end(trailers);
	}

	reset(code: number): void {
		this.#exchange.reset(code);
	}

	listen(listener: InboundListener): void {
		this.#listener = listener;
	}

	received(bytes: Uint8Array): void {
		this.#push(bytes);
	}

	ended(): void {
		this.#push("end");
	}

	gone(): void {
		this.#listener?.clientIsGone();
	}

	#push(part: Uint8Array | "end"): void {
		this.#body.push(part);
		const wake = this.#wake;
		this.#wake = undefined;
		wake?.();
	}
}
