import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Writes a certificate of 127.0.0.1 that signs itself, and its key. */
export async function selfSignedCertificate(certFile: string, keyFile: string): Promise<void> {
	await promisify(execFile)("openssl", [
		...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
		...["-subj", "/CN=plinth", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"],
		...["-keyout", keyFile, "-out", certFile],
	]);
}
