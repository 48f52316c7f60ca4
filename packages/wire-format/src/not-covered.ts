/**
 * Thrown to leave a message to the library. Shared by all encoders and decoders, since creating an error with its stack
 * trace would cost more than encoding most messages.
 */
export const notCovered = new Error("only the library can encode or decode the message");
