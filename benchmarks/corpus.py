"""Multi30k as the same ids for every system: our joint BPE, written once in each system's own form of file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environment import data_folder, read_lines
from glassformer.data.pairs import open_pairs
from glassformer.data.tokenizer import END, Tokenizer, load_tokenizer
from glassformer.tasks.prepare import Tokenizers, encode_pairs, load_pairs, make_tokenizers, usable_pairs
from glassformer.tasks.translate import PairData, TokenizerSettings

FOLDER = "translation/multi30k"


def text_files(part: str, tokenised: bool = False) -> list[Path]:
    """The English and the German file of train, val or test_2016_flickr."""
    folder = data_folder(FOLDER)
    if tokenised:
        return [folder / "tok" / f"{part}.lc.norm.tok.{language}" for language in ("en", "de")]
    return [folder / f"{part}.{language}" for language in ("en", "de")]


def write_with_tatoeba(folder: Path) -> list[Path]:
    """The tokenised training pairs twice, then those of Tatoeba in the same form, as two files."""
    written = []
    pairs = [line.split("\t")[:2] for line in read_lines(data_folder("translation/tatoeba") / "train.tsv")]
    for file, texts in zip(text_files("train", tokenised=True), zip(*pairs, strict=True), strict=True):
        has_apart = file.suffix == ".de"
        lines = 2 * read_lines(file) + [_tokenised(text, has_apart) for text in texts]
        written.append(folder / f"with-tatoeba{file.suffix}")
        written[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return written


def _tokenised(text: str, has_apart: bool) -> str:
    """Small letters and marks apart, nearly as the published files were made; German has an apostrophe apart too."""
    text = re.sub(r"[“”„»«]", '"', text.lower().replace("&", "&amp;"))
    text = re.sub(r"[’‘`´]", "'", text)
    text = re.sub(r'([.!?,;:"()…%$€])', r" \1 ", text)
    text = re.sub(r"(\d) ([.,:]) (?=\d)", r"\1\2", text)
    text = text.replace("'", " ' ") if has_apart else re.sub(r"(\w)'(\w)", r"\1 '\2", text)
    return " ".join(text.replace("'", "&apos;").replace('"', "&quot;").split())


def sentences_to_translate(n: int | None) -> list[str]:
    return read_lines(text_files("test_2016_flickr")[0], n)


def learn_tokenizer(vocab: int) -> Tokenizer:
    pairs = usable_pairs(open_pairs(text_files("train"), None, None))
    return make_tokenizers(pairs, TokenizerSettings(size=vocab)).target


@dataclass(frozen=True)
class Corpus:
    """The training pairs in a folder: a token store (ours), ids as words in two text files (OpenNMT-py, eole)."""

    folder: Path

    @property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.folder / "tokenizer.json")

    def pair_data(self) -> PairData:
        tokenizer = self.tokenizer
        return load_pairs(self.folder / "train", Tokenizers(tokenizer, tokenizer))

    def ids(self) -> Iterator[tuple[list[int], list[int]]]:
        """Each pair with the end token on both sides."""
        data = self.pair_data()
        for source, target in zip(data.source.tokens, data.target.tokens, strict=True):
            yield [*source.tolist(), END], [*target.tolist(), END]

    def tokens_a_pair(self) -> float:
        """Real target tokens of a pair, its end included, in the mean."""
        return float(self.pair_data().target.tokens.lengths.mean()) + 1


def write_corpus(folder: Path, vocab: int) -> Corpus:
    tokenizer = learn_tokenizer(vocab)
    (folder / "tokenizer.json").write_text(tokenizer.to_json())
    pairs = usable_pairs(open_pairs(text_files("train"), None, None))
    encode_pairs(pairs, Tokenizers(tokenizer, tokenizer), folder / "train", max_tokens=250)
    corpus = Corpus(folder)
    with (folder / "train.source").open("w") as source, (folder / "train.target").open("w") as target:
        for pair in corpus.ids():
            for file, ids in zip((source, target), pair, strict=True):
                file.write(" ".join(f"t{i}" for i in ids[:-1]) + "\n")  # they add the end themselves
    words = [f"t{i}" for i in range(END + 1, tokenizer.vocab_size)]
    (folder / "vocab").write_text("".join(f"{word}\t1\n" for word in words))
    return corpus
