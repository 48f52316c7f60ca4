/** The head of a request or of a response that breaks the rules of RFC 9113, section 8. */
export interface MalformedHead {
	readonly problem: string;
}
