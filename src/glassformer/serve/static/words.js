// All texts of the page, in each language. A test compares the keys.
export const WORDS = {
  en: {
    skip: "Skip to the work", model: "Model", lesson: "Lesson", runs: "Training", trained: "How it was trained", starting: "One moment …", theme: "Colours",
    system: "System", light: "Light", dark: "Dark", otherLanguage: "Deutsch",
    translate: "Translate", complete: "Write on", chat: "Chat", fill: "Fill blanks", classify: "Classify",
    transcribe: "Transcribe", compare: "Compare texts", embed: "Compare texts",
    keyNeeded: "This server wants a key", keyGive: "Open", keyWrong: "This key does not fit.",
    noServer: "The server does not answer.", noServerHint: "Is it still running? Then try again.",
    busy: "The server has a lot to do just now.", busyHint: "Try again in a moment.", broken: "Something went wrong in the server.",
    noModels: "This server has no model that the page can use.", noView: "There is no page for this model yet.",
    copy: "Copy", copied: "Copied", notCopied: "Not copied", clear: "Clear", stop: "Stop", again: "Once more",
    try: "Try", working: "Working …", stopped: "Stopped.", done: "Done.", look: "Look inside", looking: "Every step is being written down …",
    typeHere: "Type or paste a text", source: "Text", target: "Translation", translating: "Translating …",
    alternatives: "Other ways to say it", alternativesOf: "Other ways to say “{0}”",
    comesFrom: "“{0}” comes from “{1}”", wordHint: "Arrow keys go from word to word; the words they come from are marked.",
    prompt: "Beginning", promptHere: "Begin a text. The model writes on.", write: "Write on", keep: "Take it over",
    answer: "Continuation", certainty: "Show how sure it was", sure: "{0} of certainty",
    settings: "Settings", temperature: "Temperature", temperatureHelp: "0 always takes the likeliest word; higher is more daring.",
    topP: "Top p", topPHelp: "Only the likeliest words that together have this share.", maxTokens: "Tokens at most",
    seed: "Seed", seedHelp: "The same number gives the same text.", random: "random", stopAt: "Stop at", stopHelp: "One a line; \\n is a new line.",
    lengthReached: "It ended because it had as many tokens as were asked for.", contextFull: "It ended because no more fits into the model.",
    systemText: "What the model should know", message: "Your message", messageHere: "Message …", send: "Send",
    you: "You", newTalk: "New chat", chatEmpty: "Say something to the model.",
    fillHere: "A text with a blank: The sky is ___.", blank: "Add a blank", noBlank: "Add a blank (___) where a word is missing.",
    blankOf: "Blank {0}", putIn: "Choose a word to put it in.",
    classifyHere: "Type or paste a text", secondText: "Second text", result: "Result",
    compareHere: "One text a line, at least two", compareHint: "How similar are they? 1.00 means: the same to the model.",
    closest: "Closest: “{0}” and “{1}”", atLeastTwo: "Write at least two texts, one a line.", similarity: "Similarity", most: "At most {0} lines are compared.",
    record: "Speak", recording: "Recording … {0}", finish: "Done speaking", dropSound: "or drop a recording here", chooseFile: "Choose a file",
    noMicrophone: "The microphone cannot be used: the browser or you have not allowed it.", badSound: "This file cannot be heard.",
    badSoundHint: "Give WAV, MP3, Ogg, FLAC or what your browser can play.", listening: "Listening …", transcript: "Transcript", nothingHeard: "(nothing was said)",
    picture: "Picture", dropPicture: "Drop or paste a picture here, or", badPicture: "This file is not a picture.",
    characters: "{0} characters",
  },
  de: {
    skip: "Zum Inhalt", model: "Modell", lesson: "Lektion", runs: "Training", trained: "So wurde es trainiert", starting: "Einen Moment …", theme: "Farben",
    system: "System", light: "Hell", dark: "Dunkel", otherLanguage: "English",
    translate: "Übersetzen", complete: "Weiterschreiben", chat: "Gespräch", fill: "Lücken füllen", classify: "Einordnen",
    transcribe: "Mitschreiben", compare: "Texte vergleichen", embed: "Texte vergleichen",
    keyNeeded: "Dieser Server verlangt einen Schlüssel", keyGive: "Öffnen", keyWrong: "Dieser Schlüssel passt nicht.",
    noServer: "Der Server antwortet nicht.", noServerHint: "Läuft er noch? Dann versuche es noch einmal.",
    busy: "Der Server hat gerade viel zu tun.", busyHint: "Versuche es gleich noch einmal.", broken: "Im Server ging etwas schief.",
    noModels: "Dieser Server hat kein Modell, das die Seite benutzen kann.", noView: "Für dieses Modell gibt es noch keine Seite.",
    copy: "Kopieren", copied: "Kopiert", notCopied: "Nicht kopiert", clear: "Leeren", stop: "Anhalten", again: "Noch einmal",
    try: "Zum Beispiel", working: "In Arbeit …", stopped: "Angehalten.", done: "Fertig.", look: "Hineinsehen", looking: "Jeder Schritt wird aufgeschrieben …",
    typeHere: "Text schreiben oder einfügen", source: "Text", target: "Übersetzung", translating: "Wird übersetzt …",
    alternatives: "Anders gesagt", alternativesOf: "„{0}“ anders gesagt",
    comesFrom: "„{0}“ kommt von „{1}“", wordHint: "Die Pfeiltasten gehen von Wort zu Wort; markiert ist, woher es kommt.",
    prompt: "Anfang", promptHere: "Beginne einen Text. Das Modell schreibt weiter.", write: "Weiterschreiben", keep: "Übernehmen",
    answer: "Fortsetzung", certainty: "Zeigen, wie sicher es war", sure: "zu {0} sicher",
    settings: "Einstellungen", temperature: "Temperatur", temperatureHelp: "0 nimmt immer das wahrscheinlichste Wort; höher ist kühner.",
    topP: "Top p", topPHelp: "Nur die wahrscheinlichsten Wörter, die zusammen diesen Anteil haben.", maxTokens: "Höchstens Tokens",
    seed: "Startzahl", seedHelp: "Dieselbe Zahl gibt denselben Text.", random: "zufällig", stopAt: "Aufhören bei", stopHelp: "Eins pro Zeile; \\n ist ein Zeilenende.",
    lengthReached: "Zu Ende, weil es so viele Tokens sind wie verlangt.", contextFull: "Zu Ende, weil nicht mehr in das Modell passt.",
    systemText: "Was das Modell wissen soll", message: "Deine Nachricht", messageHere: "Nachricht …", send: "Senden",
    you: "Du", newTalk: "Neues Gespräch", chatEmpty: "Sag dem Modell etwas.",
    fillHere: "Ein Text mit Lücke: The sky is ___.", blank: "Lücke einfügen", noBlank: "Setze eine Lücke (___), wo ein Wort fehlt.",
    blankOf: "Lücke {0}", putIn: "Wähle ein Wort, um es einzusetzen.",
    classifyHere: "Text schreiben oder einfügen", secondText: "Zweiter Text", result: "Ergebnis",
    compareHere: "Ein Text pro Zeile, mindestens zwei", compareHint: "Wie ähnlich sind sie? 1,00 heißt: für das Modell dasselbe.",
    closest: "Am nächsten: „{0}“ und „{1}“", atLeastTwo: "Schreibe mindestens zwei Texte, einen pro Zeile.", similarity: "Ähnlichkeit", most: "Höchstens {0} Zeilen werden verglichen.",
    record: "Sprechen", recording: "Aufnahme … {0}", finish: "Fertig gesprochen", dropSound: "oder eine Aufnahme hierher ziehen", chooseFile: "Datei wählen",
    noMicrophone: "Das Mikrofon geht nicht: Der Browser oder du hast es nicht erlaubt.", badSound: "Diese Datei lässt sich nicht anhören.",
    badSoundHint: "Gib WAV, MP3, Ogg, FLAC oder was dein Browser abspielt.", listening: "Hört zu …", transcript: "Mitschrift", nothingHeard: "(nichts gesagt)",
    picture: "Bild", dropPicture: "Ein Bild hierher ziehen oder einfügen, oder", badPicture: "Diese Datei ist kein Bild.",
    characters: "{0} Zeichen",
  },
};

const stored = localStorage.getItem("language");
const wanted = stored ?? navigator.languages.map((code) => code.slice(0, 2)).find((code) => code in WORDS);
let language = wanted in WORDS ? wanted : "en";

export const currentLanguage = () => language;

export function setLanguage(code) {
  language = code;
  localStorage.setItem("language", code);
}

export function t(name, ...values) {
  return WORDS[language][name].replace(/\{(\d)\}/g, (_, i) => values[i]);
}

export function nameOfLanguage(code) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
