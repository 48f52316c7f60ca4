export const music = {};
