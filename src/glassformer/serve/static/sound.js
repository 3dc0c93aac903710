// Sound in the page: whatever the browser can play becomes WAV of 16 kHz, one channel, 16 bits.
const RATE = 16000;

export async function toWave(blob) {
  const context = new OfflineAudioContext(1, 1, RATE); // decoding changes the rate too
  const decoded = await context.decodeAudioData(await blob.arrayBuffer());
  const n = decoded.numberOfChannels;
  const mono = new Float32Array(decoded.length);
  for (let channel = 0; channel < n; channel++) decoded.getChannelData(channel).forEach((value, i) => (mono[i] += value / n));
  return new Blob([waveFile(mono)], { type: "audio/wav" });
}

export function waveFile(samples) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const text = (at, letters) => [...letters].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // plain numbers
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, RATE, true);
  view.setUint32(28, 2 * RATE, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, Math.round(Math.max(-1, Math.min(1, value)) * 32767), true));
  return view.buffer;
}

// Starts at once; `stop` gives what was heard and lets go of the microphone.
export async function record() {
  const heard = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(heard);
  const parts = [];
  recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
  recorder.start();
  const stop = () => new Promise((done) => {
    recorder.addEventListener("stop", () => {
      heard.getTracks().forEach((track) => track.stop());
      done(new Blob(parts, { type: recorder.mimeType }));
    });
    recorder.stop();
  });
  return { stop };
}
