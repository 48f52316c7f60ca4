import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";

/** Files in PEM that make a listener speak TLS. */
export interface TlsFiles {
	/** The certificate, and those between it and its authority. */
	readonly certFile: string;
	readonly keyFile: string;
	/** Mutual TLS: only clients with a certificate of these authorities are let in. */
	readonly clientCaFile?: string;
}

/** What TLS files hold. */
export interface TlsMaterial {
	readonly cert: string;
	readonly key: string;
	readonly ca?: string;
}

/**
 * Checks that contents of TLS files fit together, before a listener takes them.
 *
 * @throws Error that names the file which is wrong.
 */
export function checkTlsMaterial(files: TlsFiles, material: TlsMaterial): void {
	try {
		new X509Certificate(material.cert);
	} catch (cause) {
		throw new Error(`${files.certFile} holds no certificate in PEM`, { cause });
	}
	if (files.clientCaFile !== undefined) {
		try {
			new X509Certificate(material.ca ?? "");
		} catch (cause) {
			throw new Error(`${files.clientCaFile} holds no certificate in PEM`, { cause });
		}
	}
	try {
		createSecureContext(material);
	} catch (cause) {
		throw new Error(
			`${files.keyFile} holds no key in PEM of the certificate in ${files.certFile}`,
			{
				cause,
			},
		);
	}
}
