import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import type { EtcdTls } from "../client/etcd-options.ts";

/** Whether there is an etcd to test with. */
export const hasEtcd = spawnSync("etcd", ["--version"]).status === 0;
if (!hasEtcd) {
	console.log("etcd is not installed (Debian: etcd-server): tests that need it are skipped");
}

/** What an etcd for tests differs in from the usual. */
export interface EtcdProcessOptions {
	readonly flags?: readonly string[];
	/** Makes it speak TLS only: what a client needs to be taken. Its own part is in `flags`. */
	readonly tls?: EtcdTls;
}

interface Member {
	readonly name: string;
	readonly port: number;
	readonly peerPort: number;
}

/** An etcd member, in a directory of its own. */
export class EtcdProcess {
	readonly url: string;
	readonly #directory: string;
	readonly #arguments: readonly string[];
	readonly #tls: EtcdTls | undefined;
	#process: ChildProcess | undefined;

	private constructor(
		directory: string,
		member: Member,
		members: readonly Member[],
		{ flags = [], tls }: EtcdProcessOptions,
	) {
		this.#directory = directory;
		this.#tls = tls;
		this.url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${member.port}`;
		const peerUrl = (of: Member) => `http://127.0.0.1:${of.peerPort}`;
		this.#arguments = [
			...["--name", member.name, "--data-dir", join(directory, "data"), "--log-level", "error"],
			...["--listen-client-urls", this.url, "--advertise-client-urls", this.url],
			...["--listen-peer-urls", peerUrl(member), "--initial-advertise-peer-urls", peerUrl(member)],
			...["--initial-cluster", members.map((each) => `${each.name}=${peerUrl(each)}`).join(",")],
			...flags,
		];
	}

	/** Starts a cluster of one member, and waits until it answers. */
	static async start(options: EtcdProcessOptions = {}): Promise<EtcdProcess> {
		const [etcd] = await EtcdProcess.startCluster(1, options);
		if (etcd === undefined) {
			throw new TypeError("a cluster of one has a member");
		}
		return etcd;
	}

	/** Starts a cluster of that many members, and waits until all of them answer. */
	static async startCluster(
		size: number,
		options: EtcdProcessOptions = {},
	): Promise<readonly EtcdProcess[]> {
		const members: Member[] = [];
		while (members.length < size) {
			const [port, peerPort] = [await freePort(), await freePort()];
			members.push({ name: `member-${members.length}`, port, peerPort });
		}
		const started = members.map(async (member) => {
			const directory = await mkdtemp(join(tmpdir(), "plinth-etcd-"));
			const etcd = new EtcdProcess(directory, member, members, options);
			await etcd.restart();
			return etcd;
		});
		return Promise.all(started);
	}

	/** Starts it again, with what it had stored, and waits until it answers. */
	async restart(): Promise<void> {
		this.#process = spawn("etcd", this.#arguments, { stdio: "ignore" });
		const client = new EtcdClient({
			endpoints: [this.url],
			requestTimeoutMs: 30_000,
			...(this.#tls && { tls: this.#tls }),
		});
		try {
			await client.range({ key: Buffer.from("/"), keysOnly: true });
		} catch (error) {
			// To be told that one is nobody is an answer too.
			if (!(error instanceof EtcdError && error.outcome === "refused")) {
				throw error;
			}
		} finally {
			client.close();
		}
	}

	/** Ends it as a power failure would. */
	async kill(): Promise<void> {
		const process = this.#process;
		this.#process = undefined;
		if (process !== undefined && process.exitCode === null && process.signalCode === null) {
			process.kill("SIGKILL");
			await once(process, "exit");
		}
	}

	/** Ends it and loses what it stored, as when it is put back to a backup from its very beginning. */
	async forget(): Promise<void> {
		await this.kill();
		await rm(join(this.#directory, "data"), { recursive: true });
	}

	/** Stops it, as a machine is that hangs. */
	suspend(): void {
		this.#process?.kill("SIGSTOP");
	}

	/** Lets it go on. */
	resume(): void {
		this.#process?.kill("SIGCONT");
	}

	/** Ends it, and removes what it stored. */
	async dispose(): Promise<void> {
		await this.kill();
		await rm(this.#directory, { recursive: true });
	}
}

async function freePort(): Promise<number> {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const address = server.address();
	server.close();
	await once(server, "close");
	if (address === null || typeof address === "string") {
		throw new TypeError("a server that listens has a port");
	}
	return address.port;
}
