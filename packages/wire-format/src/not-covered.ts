/**
 * Thrown to leave a message to the library. All encoders and decoders throw the same object, because creating an error
 * with its stack trace costs more than encoding most messages.
 */
export const notCovered = new Error("only the library can encode or decode the message");
