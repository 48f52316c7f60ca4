import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@plinth/test-support/ports";
import { suspendProcess } from "@plinth/test-support/processes";
import { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import type { EtcdTls } from "./client/etcd-options.ts";

/** Options of an etcd process. */
export interface EtcdProcessOptions {
	readonly flags?: readonly string[];
	/** TLS options of its clients; those of etcd itself are in `flags`. */
	readonly tls?: EtcdTls;
}

interface Member {
	readonly name: string;
	readonly port: number;
	readonly peerPort: number;
}

/** An etcd member in a temporary directory. */
export class EtcdProcess {
	readonly url: string;
	readonly #directory: string;
	readonly #member: Member;
	readonly #members: readonly Member[];
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
		this.#member = member;
		this.#members = members;
		this.#tls = tls;
		this.url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${member.port}`;
		this.#arguments = [
			...["--name", member.name, "--data-dir", join(directory, "data"), "--log-level", "error"],
			...["--listen-client-urls", this.url, "--advertise-client-urls", this.url],
			...["--listen-peer-urls", peerUrl(member), "--initial-advertise-peer-urls", peerUrl(member)],
			...["--initial-cluster", initialCluster(members)],
			...flags,
		];
	}

	/** Starts a cluster of one member, and waits until it responds. */
	static async start(options: EtcdProcessOptions = {}): Promise<EtcdProcess> {
		const [etcd] = await EtcdProcess.startCluster(1, options);
		if (etcd === undefined) {
			throw new TypeError("a cluster of one has a member");
		}
		return etcd;
	}

	/** Starts a cluster of that many members, and waits until all of them respond. */
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

	/**
	 * Starts it again, with its stored data, and waits until it responds.
	 *
	 * @param flags More flags, for this time.
	 */
	async restart(...flags: readonly string[]): Promise<void> {
		this.#process = spawn("etcd", [...this.#arguments, ...flags], { stdio: "ignore" });
		const client = new EtcdClient({
			endpoints: [this.url],
			requestTimeoutMs: 30_000,
			...(this.#tls && { tls: this.#tls }),
		});
		try {
			await client.range({ key: Buffer.from("/"), keysOnly: true });
		} catch (error) {
			// A refusal for lack of a user is a response too.
			if (!(error instanceof EtcdError && error.outcome === "refused")) {
				throw error;
			}
		} finally {
			client.close();
		}
	}

	/** Kills it, as a power failure would. */
	async kill(): Promise<void> {
		const process = this.#process;
		this.#process = undefined;
		if (process !== undefined && process.exitCode === null && process.signalCode === null) {
			process.kill("SIGKILL");
			await once(process, "exit");
		}
	}

	/** Kills it and deletes its data. */
	async forget(): Promise<void> {
		await this.kill();
		await rm(join(this.#directory, "data"), { recursive: true });
	}

	/** Keeps a copy of its data, for `bringBack`. It is down meanwhile. */
	async copy(): Promise<void> {
		await this.kill();
		await cp(join(this.#directory, "data"), join(this.#directory, "copy"), { recursive: true });
		await this.restart();
	}

	/** Kills it, and restores its data from the copy. */
	async bringBack(): Promise<void> {
		await this.forget();
		await cp(join(this.#directory, "copy"), join(this.#directory, "data"), { recursive: true });
	}

	/** Takes a snapshot of the cluster, with etcdctl. */
	async saveSnapshot(): Promise<string> {
		const file = join(this.#directory, "snapshot.db");
		etcdctl("--endpoints", this.url, "snapshot", "save", file);
		return file;
	}

	/** Kills it, and restores its data from a snapshot with etcdctl, as a member of a new cluster. */
	async restoreSnapshot(file: string, clusterToken: string): Promise<void> {
		await this.forget();
		etcdctl(
			...["snapshot", "restore", file, "--data-dir", join(this.#directory, "data")],
			...["--name", this.#member.name, "--initial-advertise-peer-urls", peerUrl(this.#member)],
			...["--initial-cluster", initialCluster(this.#members)],
			...["--initial-cluster-token", clusterToken],
		);
	}

	/** Stops it, like a machine that hangs. */
	suspend(): Promise<void> {
		return suspendProcess(this.#process);
	}

	/** Continues it. */
	resume(): void {
		this.#process?.kill("SIGCONT");
	}

	/** Kills it, and deletes its directory. */
	async dispose(): Promise<void> {
		await this.kill();
		await rm(this.#directory, { recursive: true });
	}
}

function peerUrl({ peerPort }: Member): string {
	return `http://127.0.0.1:${peerPort}`;
}

function initialCluster(members: readonly Member[]): string {
	return members.map((member) => `${member.name}=${peerUrl(member)}`).join(",");
}

/** Runs etcdctl, which must succeed. */
export function etcdctl(...args: readonly string[]): void {
	const { status, stderr, error } = spawnSync("etcdctl", args, {
		env: { ...process.env, ETCDCTL_API: "3" },
	});
	if (status !== 0) {
		throw new Error(`etcdctl ${args.join(" ")}: ${error ?? stderr}`);
	}
}
