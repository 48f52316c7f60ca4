import { Code, ConnectError } from "@connectrpc/connect";
import { unlessAborted } from "@plinth/runtime";

/** A gate that blocks calls while it is shut. */
export interface Gate {
	open(): void;
	readonly waiting: number;
}

interface Shut {
	readonly opened: Promise<void>;
	waiting: number;
}

/** How a service under test stalls, fails and breaks: by names such as `snapshot demo.v1.Artist` and `call Write`. */
export class Stalls {
	readonly #gates = new Map<string, Shut>();
	readonly #failures = new Map<string, ConnectError[]>();
	readonly #broken = new Map<string, { readonly count: number; readonly error: ConnectError }>();

	/** Blocks whatever passes that name until the gate is opened. */
	shut(what: string): Gate {
		const { promise, resolve } = Promise.withResolvers<void>();
		const shut: Shut = { opened: promise, waiting: 0 };
		this.#gates.set(what, shut);
		return {
			open: () => {
				this.#gates.delete(what);
				resolve();
			},
			get waiting() {
				return shut.waiting;
			},
		};
	}

	isShut(what: string): boolean {
		return this.#gates.has(what);
	}

	/** Makes the next one that passes that name fail. */
	failNext(what: string, error: ConnectError): void {
		this.#failures.set(what, [...(this.#failures.get(what) ?? []), error]);
	}

	/** Ends the open watches of a type with an error. */
	breakWatches(type: string, error = new ConnectError("broken", Code.Internal)): void {
		this.#broken.set(type, { count: this.breaks(type) + 1, error });
	}

	/** How often the watches of a type were ended. */
	breaks(type: string): number {
		return this.#broken.get(type)?.count ?? 0;
	}

	/** @throws ConnectError if the watches of the type were ended since then. */
	throwIfBroken(type: string, before: number): void {
		const broken = this.#broken.get(type);
		if (broken !== undefined && broken.count > before) {
			throw broken.error;
		}
	}

	/** Waits at the gate, if it is shut, and fails if it is to fail. */
	async pass(what: string, signal?: AbortSignal): Promise<void> {
		await this.gate(what, signal);
		const failure = this.#failures.get(what)?.shift();
		if (failure !== undefined) {
			throw failure;
		}
	}

	/** Waits at the gate, if it is shut. @throws the reason of the signal, if that aborts before the gate is opened. */
	async gate(what: string, signal?: AbortSignal): Promise<void> {
		const shut = this.#gates.get(what);
		if (shut === undefined) {
			return;
		}
		shut.waiting += 1;
		try {
			await (signal === undefined ? shut.opened : unlessAborted(shut.opened, signal));
		} finally {
			shut.waiting -= 1;
		}
	}
}
