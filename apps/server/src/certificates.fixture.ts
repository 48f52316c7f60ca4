import "reflect-metadata";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
	BasicConstraintsExtension,
	PemConverter,
	SubjectAlternativeNameExtension,
	X509CertificateGenerator,
} from "@peculiar/x509";
import { onTestFinished } from "vitest";

const dayMs = 24 * 60 * 60_000;
const signing = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A certificate and its key, in PEM. */
export interface Issued {
	readonly cert: string;
	readonly key: string;
}

/** A certificate authority. */
export interface Authority {
	/** Its own certificate, in PEM. */
	readonly cert: string;
	/**
	 * A certificate for this machine, or for a client.
	 *
	 * @param options.host - the only host name that it is for. Default: `localhost` and 127.0.0.1.
	 */
	issue(options?: {
		readonly name?: string;
		readonly expired?: boolean;
		readonly host?: string;
	}): Promise<Issued>;
}

async function pemOfKey(key: CryptoKey): Promise<string> {
	return PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

/** Creates a new authority. */
export async function createAuthority(name = "Test authority"): Promise<Authority> {
	const keys = await crypto.subtle.generateKey(signing, true, ["sign", "verify"]);
	const own = await X509CertificateGenerator.createSelfSigned({
		name: `CN=${name}`,
		keys,
		signingAlgorithm: signing,
		notBefore: new Date(Date.now() - 10 * dayMs),
		notAfter: new Date(Date.now() + 10 * dayMs),
		extensions: [new BasicConstraintsExtension(true, undefined, true)],
	});
	return {
		cert: own.toString("pem"),
		async issue({ name: subject = "localhost", expired = false, host } = {}) {
			const { publicKey, privateKey } = await crypto.subtle.generateKey(signing, true, [
				"sign",
				"verify",
			]);
			const cert = await X509CertificateGenerator.create({
				subject: `CN=${subject}`,
				issuer: own.subject,
				publicKey,
				signingKey: keys.privateKey,
				signingAlgorithm: signing,
				notBefore: new Date(Date.now() - 5 * dayMs),
				notAfter: new Date(Date.now() + (expired ? -1 : 1) * dayMs),
				extensions: [
					new SubjectAlternativeNameExtension(
						host === undefined
							? [
									{ type: "dns", value: "localhost" },
									{ type: "ip", value: "127.0.0.1" },
								]
							: [{ type: "dns", value: host }],
					),
				],
			});
			return { cert: cert.toString("pem"), key: await pemOfKey(privateKey) };
		},
	};
}

/** Writes files to a directory of the test. Returns their paths. */
export function filesOf<Names extends string>(
	contents: Readonly<Record<Names, string>>,
): Readonly<Record<Names, string>> {
	const folder = mkdtempSync(join(tmpdir(), "plinth-files-"));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const paths = Object.entries<string>(contents).map(([name, content]) => {
		const path = join(folder, name);
		writeFileSync(path, content);
		return [name, path] as const;
	});
	// Each name has its path: they are the entries of `contents`.
	return Object.fromEntries(paths) as Record<Names, string>;
}
