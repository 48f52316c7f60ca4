import { once } from "node:events";
import { constants } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { type Attack, count, pause, repeat } from "./attack.ts";
import { begin, closed, enveloped, http1, paths, session, socket, unary } from "./raw-calls.ts";

const type = { group: "music", groupVersion: "v1", kind: "Artist" };
const megabyte = "x".repeat(4_000);

/** A write of a resource of almost a megabyte, with different contents each time. */
function largeWrite(namespace: string, name: string): string {
	return JSON.stringify({
		resource: {
			id: { type, tenancy: { partition: "default", namespace }, name },
			data: {
				"@type": "type.googleapis.com/music.v1.Artist",
				genre: `${Math.random()}${megabyte.repeat(225)}`,
			},
		},
	});
}

/** A WriteRequest of 4 MB: 1.3 million empty owner references in a resource. */
function manyFields(): Buffer {
	const references = Buffer.alloc(3 * 1_300_000);
	for (let at = 0; at < references.length; at += 3) {
		references.writeUInt16BE(0xa206, at);
	}
	const length: number[] = [];
	for (let left = references.length; left > 0; left = Math.floor(left / 128)) {
		length.push((left % 128) | (left >= 128 ? 0x80 : 0));
	}
	return Buffer.concat([Buffer.from([0x0a, ...length]), references]);
}

/** All attacks, by their names. */
export const attacks: Readonly<Record<string, Attack>> = {
	/** 10,000 watches of health without a token, held. */
	async healthWatches(target, tally) {
		await repeat(100, 1_000, target.end, async () => {
			const connection = await session(target);
			if (connection === undefined) {
				count(tally, "connection refused");
				return;
			}
			for (let each = 0; each < 100 && !connection.destroyed; each += 1) {
				const stream = begin(connection, paths.healthWatch, {
					"content-type": "application/grpc",
				});
				stream.on("response", (headers) =>
					count(tally, headers["grpc-status"] === undefined ? "watching" : "refused"),
				);
				stream.end(enveloped(Buffer.alloc(0)));
				if (each % 10 === 9) {
					await pause(50, target.end);
				}
			}
			await Promise.race([once(connection, "close"), pause(30_000, target.end)]);
			connection.destroy();
		});
	},

	/** 300 connections of HTTP/1.1 that post List eight times over and read nothing. */
	async unreadLists(target, tally) {
		const body = JSON.stringify({ type, tenancy: { namespace: target.namespace } });
		const headers = {
			"content-type": "application/json",
			authorization: `Bearer ${target.token}`,
		};
		const request = http1(paths.list, headers, body);
		await repeat(300, 1_000, target.end, async () => {
			const opened = await socket(target);
			opened.write(Buffer.concat(Array.from({ length: 8 }, () => request)));
			await closed(opened);
			count(tally, "connection cut");
		});
	},

	/** Watches over HTTP/2 whose client never reads. */
	async unreadWatches(target, tally) {
		const body = enveloped(
			Buffer.from(JSON.stringify({ type, tenancy: { namespace: target.namespace } })),
		);
		await repeat(20, 1_000, target.end, async () => {
			const connection = await session(target);
			if (connection === undefined) {
				return;
			}
			const ends = Array.from({ length: 10 }, async () => {
				const stream = begin(connection, paths.watch, {
					"content-type": "application/connect+json",
					authorization: `Bearer ${target.token}`,
				});
				stream.pause();
				stream.end(body);
				await new Promise((resolve) => stream.once("close", resolve));
				count(tally, "stream ended");
			});
			await Promise.race([Promise.all(ends), once(connection, "close")]);
			connection.destroy();
		});
	},

	/** Page tokens over resources of a megabyte that are rewritten all the time. */
	async heldPages(target, tally) {
		const connection = await session(target);
		if (connection === undefined) {
			return;
		}
		const list = JSON.stringify({ type, tenancy: { namespace: target.namespace }, pageSize: 1 });
		await repeat(2, 200, target.end, async (loop) => {
			for (let each = 0; each < 10; each += 1) {
				const name = `large-${loop}-${each}`;
				const { status } = await unary(
					connection,
					paths.write,
					target.token,
					largeWrite(target.namespace, name),
				);
				count(tally, `write ${status}`);
				const listed = await unary(connection, paths.list, target.token, list);
				count(tally, `list ${listed.status}`);
			}
		});
	},

	/** 2,000 calls whose bodies end after one byte. */
	async unfinishedBodies(target, tally) {
		await repeat(4, 1_000, target.end, async () => {
			const connection = await session(target);
			if (connection === undefined) {
				return;
			}
			const ends = Array.from({ length: 500 }, async () => {
				const stream = begin(connection, paths.write, {
					"content-type": "application/json",
					authorization: `Bearer ${target.powerless}`,
				});
				stream.resume();
				stream.write("{");
				stream.on("response", (headers) => count(tally, `status ${headers[":status"]}`));
				await new Promise((resolve) => stream.once("close", resolve));
			});
			await Promise.race([Promise.all(ends), once(connection, "close")]);
			connection.destroy();
		});
	},

	/** 400 calls whose messages of 4 MB lack their last byte. */
	async unfinishedMessages(target, tally) {
		const message = Buffer.alloc(4_000_000);
		await repeat(4, 1_000, target.end, async () => {
			const connection = await session(target);
			if (connection === undefined) {
				return;
			}
			const ends = Array.from({ length: 100 }, async () => {
				const stream = begin(connection, paths.write, {
					"content-type": "application/proto",
					authorization: `Bearer ${target.token}`,
				});
				stream.resume();
				stream.write(message);
				stream.on("response", (headers) => count(tally, `status ${headers[":status"]}`));
				await new Promise((resolve) => stream.once("close", resolve));
				count(tally, "ended");
			});
			await Promise.race([Promise.all(ends), once(connection, "close")]);
			connection.destroy();
		});
	},

	/** Messages of 4 MB with 1.3 million fields, from a subject without rights; compressed ones too. */
	async manyFields(target, tally) {
		const message = manyFields();
		const compressed = gzipSync(message);
		const json = `{"resource":{"ownerReferences":[${"{},".repeat(1_300_000)}{}]}}`;
		await repeat(6, 100, target.end, async (loop) => {
			const connection = await session(target);
			if (connection === undefined) {
				return;
			}
			if (loop % 3 === 0) {
				const stream = begin(connection, paths.write, {
					"content-type": "application/proto",
					"content-encoding": "gzip",
					authorization: `Bearer ${target.powerless}`,
				});
				stream.on("response", (headers) => count(tally, `gzip ${headers[":status"]}`));
				stream.resume();
				stream.end(compressed);
				await once(stream, "close");
			} else {
				const body = loop % 3 === 1 ? message : json;
				const { status } = await unary(connection, paths.write, target.powerless, body);
				count(tally, `${typeof body === "string" ? "json" : "binary"} ${status}`);
			}
			connection.destroy();
		});
	},

	/** Calls that are reset as soon as they have begun. */
	async resets(target, tally) {
		await repeat(2, 500, target.end, async () => {
			const connection = await session(target);
			if (connection === undefined) {
				return;
			}
			for (let each = 0; each < 500 && !connection.destroyed; each += 1) {
				const stream = begin(connection, paths.list, {
					"content-type": "application/json",
					authorization: `Bearer ${target.token}`,
				});
				stream.close(constants.NGHTTP2_CANCEL);
				count(tally, "reset");
				if (each % 50 === 49) {
					await pause(10, target.end);
				}
			}
			connection.destroy();
		});
	},

	/** Connections that send their headers byte by byte, or nothing. */
	async slowHeaders(target, tally) {
		await repeat(200, 500, target.end, async (loop) => {
			const opened = await socket(target);
			const gone = closed(opened);
			const request = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ";
			for (let at = 0; !opened.destroyed && !target.end.aborted; at += 1) {
				if (loop % 2 === 0) {
					opened.write(request[at] ?? "x");
				}
				await Promise.race([gone, delay(500)]);
			}
			count(tally, "connection closed");
		});
	},

	/** Pages of a foreign origin that write. */
	async foreignOrigin(target, tally) {
		const body = JSON.stringify({ resource: {} });
		await repeat(2, 100, target.end, async () => {
			const response = await fetch(`${target.address}${paths.write}`, {
				method: "POST",
				headers: {
					"content-type": "application/json",
					origin: "http://evil.example",
					authorization: `Bearer ${target.token}`,
				},
				body,
				signal: target.end,
			});
			await response.arrayBuffer();
			count(tally, `status ${response.status}`);
		});
	},

	/** Calls with invalid tokens. */
	async guessedTokens(target, tally) {
		await repeat(8, 5, target.end, async () => {
			const response = await fetch(`${target.address}${paths.list}`, {
				method: "POST",
				headers: {
					"content-type": "application/json",
					authorization: `Bearer ${Math.random()}`,
				},
				body: JSON.stringify({ type }),
				signal: target.end,
			});
			await response.arrayBuffer();
			count(tally, `status ${response.status}`);
		});
	},
};
