import type { Faults } from "./faults.ts";

/** As many frames are under way before the sender must wait. */
const windowFrames = 4;

/**
 * One direction of an exchange: frames arrive in order, each once, after delays. HTTP/2 neither reorders nor repeats bytes;
 * what is repeated are calls, by agents and clients.
 */
export class Direction<Frame> {
	readonly #faults: Faults;
	readonly #deliver: (frame: Frame) => void;
	readonly #frames: Frame[] = [];
	#room: PromiseWithResolvers<void> | undefined;
	#isMoving = false;
	#isPaused = false;
	#isCut = false;

	constructor(faults: Faults, deliver: (frame: Frame) => void) {
		this.#faults = faults;
		this.#deliver = deliver;
	}

	/** Sends a frame. Returns a promise, which resolves when there is room for another one, if there is none now. */
	send(frame: Frame): Promise<void> | undefined {
		if (this.#isCut) {
			return undefined;
		}
		this.#frames.push(frame);
		void this.#move();
		if (this.#frames.length < windowFrames) {
			return undefined;
		}
		this.#room ??= Promise.withResolvers();
		return this.#room.promise;
	}

	/** The receiver takes no more for now. */
	pause(): void {
		this.#isPaused = true;
	}

	resume(): void {
		this.#isPaused = false;
		void this.#move();
	}

	/** Nothing arrives from now on. */
	cut(): void {
		this.#isCut = true;
		this.#frames.length = 0;
		this.#room?.resolve();
	}

	async #move(): Promise<void> {
		if (this.#isMoving) {
			return;
		}
		this.#isMoving = true;
		while (this.#frames.length > 0 && !this.#isPaused) {
			await this.#faults.delay();
			if (this.#isPaused) {
				break;
			}
			const frame = this.#frames.shift();
			if (frame !== undefined) {
				this.#deliver(frame);
			}
			if (this.#frames.length < windowFrames) {
				this.#room?.resolve();
				this.#room = undefined;
			}
		}
		this.#isMoving = false;
	}
}
