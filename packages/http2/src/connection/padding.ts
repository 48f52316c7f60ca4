import { ConnectionError, errorCode } from "../error-code.ts";
import { flag } from "../frames/frame.ts";

/**
 * The end of a payload without its padding, whose length is in its first byte if the frame is padded.
 *
 * @throws ConnectionError if the padding is as long as the payload or longer.
 */
export function endWithoutPadding(
	flags: number,
	bytes: Buffer,
	start: number,
	end: number,
): number {
	if ((flags & flag.padded) === 0) {
		return end;
	}
	if (start === end) {
		throw new ConnectionError(errorCode.frameSizeError, "a padded frame is empty");
	}
	const unpadded = end - (bytes[start] ?? 0);
	if (unpadded <= start) {
		throw new ConnectionError(errorCode.protocolError, "the padding is longer than its frame");
	}
	return unpadded;
}
