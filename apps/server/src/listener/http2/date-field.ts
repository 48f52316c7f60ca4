let text: string | undefined;

function forget(): void {
	text = undefined;
}

/** The value of a Date header now (RFC 9110, section 6.6.1). It changes once a second. */
export function dateField(): string {
	if (text === undefined) {
		const now = new Date();
		text = now.toUTCString();
		setTimeout(forget, 1_000 - now.getMilliseconds()).unref();
	}
	return text;
}
