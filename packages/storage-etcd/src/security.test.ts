import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageUnavailable } from "@plinth/storage";
import { listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { createEtcdBackend } from "./etcd-backend.ts";
import { EtcdProcess } from "./etcd-process.fixture.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import type { OnTestFinished } from "./use-etcd.fixture.ts";

/** Runs a command that must succeed. */
function run(command: string, ...args: readonly string[]): void {
	runWith("", command, ...args);
}

function runWith(input: string, command: string, ...args: readonly string[]): void {
	const { status, stderr, error } = spawnSync(command, args, {
		input,
		env: { ...process.env, ETCDCTL_API: "3" },
	});
	if (status !== 0) {
		throw new Error(`${command} ${args.join(" ")}: ${error ?? stderr}`);
	}
}

describeWith("etcd", "openssl")("TLS", () => {
	it("takes the client's certificate, and trusts the given authority only", async ({
		onTestFinished,
	}) => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-tls-"));
		onTestFinished(() => rm(directory, { recursive: true }));
		const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
		run(
			...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
			...["-nodes", "-days", "2", "-subj", "/CN=plinth-test", "-keyout", key, "-out", cert],
			...["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
		);
		const pem = await readFile(cert, "utf8");
		const tls = { ca: pem, cert: pem, key: await readFile(key, "utf8") };
		const etcd = await EtcdProcess.start({
			tls,
			flags: [
				"--cert-file",
				cert,
				"--key-file",
				key,
				"--client-cert-auth",
				"--trusted-ca-file",
				cert,
			],
		});
		onTestFinished(() => etcd.dispose());
		const backend = await createEtcdBackend({ endpoints: [etcd.url], tls });
		onTestFinished(() => backend.close());
		await backend.commit([putArtist("a")]);
		expect(await listArtists(backend)).toEqual(["a="]);
		for (const refused of [{ cert: tls.cert, key: tls.key }, { ca: tls.ca }]) {
			const opening = createEtcdBackend({
				endpoints: [etcd.url],
				tls: refused,
				requestTimeoutMs: 500,
			});
			await expect(opening).rejects.toThrow(StorageUnavailable);
		}
	});
});

describeWith("etcd", "etcdctl")("a user and password", () => {
	/** An etcd whose user `plinth` has the password `secret`. */
	async function etcdWithUsers(onTestFinished: OnTestFinished): Promise<EtcdProcess> {
		// The cheapest hashes of passwords.
		const etcd = await EtcdProcess.start({ flags: ["--bcrypt-cost", "4"] });
		onTestFinished(() => etcd.dispose());
		const etcdctl = (...args: string[]) => run("etcdctl", "--endpoints", etcd.url, ...args);
		etcdctl("user", "add", "root:secret");
		etcdctl("user", "add", "plinth:secret");
		etcdctl("role", "add", "plinth");
		etcdctl("role", "grant-permission", "plinth", "--prefix=true", "readwrite", "/plinth/");
		etcdctl("user", "grant-role", "root", "root");
		etcdctl("user", "grant-role", "plinth", "plinth");
		etcdctl("auth", "enable");
		return etcd;
	}

	it.concurrent("follow a change of the password, and are Unavailable until both sides have it", async ({
		onTestFinished,
	}) => {
		const etcd = await etcdWithUsers(onTestFinished);
		const current = { password: "secret" };
		const auth = { user: "plinth", password: async () => current.password };
		const backend = await createEtcdBackend({ endpoints: [etcd.url], auth });
		onTestFinished(() => backend.close());
		await backend.commit([putArtist("a")]);
		const endpoint = ["--endpoints", etcd.url, "--user", "root:secret"];
		runWith("changed\n", "etcdctl", ...endpoint, "user", "passwd", "plinth", "--interactive=false");
		const commits = await Promise.allSettled([
			backend.commit([putArtist("b")]),
			backend.commit([putArtist("c")]),
			backend.commit([putArtist("d")]),
		]);
		for (const commit of commits) {
			expect(commit).toMatchObject({ status: "rejected", reason: expect.any(StorageUnavailable) });
			expect(commit).toMatchObject({ reason: { message: expect.stringContaining('"plinth"') } });
		}
		current.password = "changed";
		await backend.commit([putArtist("b")]);
		expect(await listArtists(backend)).toEqual(["a=", "b="]);
	});

	it.concurrent("are Unavailable while the password can't be read", async ({ onTestFinished }) => {
		const etcd = await etcdWithUsers(onTestFinished);
		const password = async () => {
			throw new Error("ENOENT: no such file");
		};
		const opening = createEtcdBackend({
			endpoints: [etcd.url],
			auth: { user: "plinth", password },
		});
		await expect(opening).rejects.toThrow(StorageUnavailable);
		await expect(opening).rejects.toThrow("no such file");
	});

	it.concurrent("are exchanged for a token, and again if etcd no longer knows it", async ({
		onTestFinished,
	}) => {
		const etcd = await etcdWithUsers(onTestFinished);
		const endpoints = [etcd.url];
		const auth = { user: "plinth", password: "secret" };
		const backend = await createEtcdBackend({ endpoints, auth });
		onTestFinished(() => backend.close());
		const leases = new EtcdLeases({ endpoints, auth, ttlSeconds: 2 });
		onTestFinished(() => leases.close());
		const { fence } = await leases.acquire("singletons", new AbortController().signal);
		await backend.commit([putArtist("a")], { fence });
		// Its tokens are in memory only.
		await etcd.kill();
		await etcd.restart();
		await backend.commit([putArtist("b")]);
		expect(await listArtists(backend)).toEqual(["a=", "b="]);
		const wrong = createEtcdBackend({ endpoints, auth: { ...auth, password: "guess" } });
		await expect(wrong).rejects.toThrow("password");
		await expect(createEtcdBackend({ endpoints })).rejects.toThrow(StorageUnavailable);
		await expect(createEtcdBackend({ endpoints, auth, prefix: "/other" })).rejects.toThrow(
			"permission denied",
		);
	});
});
