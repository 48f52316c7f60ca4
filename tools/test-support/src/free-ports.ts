import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Ports below those that systems give to clients and to servers without a port of their own: Linux begins at 32,768 by
 * default, gVisor at 16,000. None of these takes a port between the choice and its use.
 *
 * Nor does another process of tests: the ports are divided into blocks, and a process listens on the first port of a
 * block for as long as it lives, whichever way it ends. It gives out the other ones, each once.
 */
const firstPort = 6_000;
const blockSize = 200;
const blockCount = 50;

const retryMs = 100;

/** The ports of the last block that are not given out: from `next` on, before `end`. */
let own: Promise<{ next: number; readonly end: number }> | undefined;

/** A port of 127.0.0.1 that no process listens on, and that nobody is given again while this process lives. */
export async function freePort(): Promise<number> {
	for (;;) {
		own ??= takeBlock();
		const taken = own;
		const block = await taken;
		if (block.next < block.end) {
			const port = block.next++;
			if (await isFree(port)) {
				return port;
			}
		} else if (own === taken) {
			own = undefined;
		}
	}
}

/** Different free ports. */
export async function freePorts(length: number): Promise<readonly number[]> {
	return Promise.all(Array.from({ length }, freePort));
}

/** The first of so many free ports in a row, fewer than 200. */
export async function freePortsInARow(length: number): Promise<number> {
	if (length >= blockSize) {
		throw new RangeError(`${length} ports in a row: no more than ${blockSize - 1} are given out`);
	}
	for (;;) {
		const { next } = await takeBlock();
		const ports = Array.from({ length }, (_, at) => next + at);
		if ((await Promise.all(ports.map(isFree))).every(Boolean)) {
			return next;
		}
	}
}

/** Whether a server can listen on a port of 127.0.0.1. */
async function isFree(port: number): Promise<boolean> {
	const server = await listen(port);
	if (server === undefined) {
		return false;
	}
	server.close();
	await once(server, "close");
	return true;
}

/** Takes a block for as long as this process lives. Waits for another process to end if none is left. */
async function takeBlock(): Promise<{ next: number; readonly end: number }> {
	for (;;) {
		const start = Math.floor(Math.random() * blockCount);
		for (let tried = 0; tried < blockCount; tried++) {
			const first = firstPort + ((start + tried) % blockCount) * blockSize;
			const lock = await listen(first);
			if (lock !== undefined) {
				lock.unref();
				return { next: first + 1, end: first + blockSize };
			}
		}
		await sleep(retryMs);
	}
}

async function listen(port: number): Promise<Server | undefined> {
	const server = createServer();
	try {
		await once(server.listen({ port, host: "127.0.0.1", exclusive: true }), "listening");
		return server;
	} catch {
		return undefined;
	}
}
